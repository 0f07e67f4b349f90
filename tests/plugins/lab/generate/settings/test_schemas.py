"""Operators of specifications that ONNX has no schema of."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import onnx
import pytest
from onnx.defs import OpSchema

from conrepair_lab.generate.networks import made
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.settings.schemas import SpecificationError, schema_of
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.specifications import specification
from conrepair_lab.generate.specifications.specification import specifications
from conrepair_lab.generate.wishes import Wishes

OP = "com.microsoft::QuickGelu"


@pytest.fixture
def own() -> Iterator[None]:
    """A specification of an operator that's not ONNX's."""
    specifications()

    @specification.operator(OP)
    def quick(s: Setting) -> None:
        s.output(s.input("X").shape)

    specifications.cache_clear()
    yield
    del specification._ALL[OP]
    specifications.cache_clear()
    schema_of.cache_clear()


@pytest.mark.usefixtures("own")
def test_its_file_is_named_and_with_a_schema_it_is_in_networks() -> None:
    with pytest.raises(SpecificationError, match=r"test_schemas\.py: ONNX .* no schema of com\.microsoft::QuickGelu"):
        schema_of(OP, 20)
    formal, floats = OpSchema.FormalParameter, [("T", ["tensor(float)"], "")]
    onnx.defs.register_schema(
        OpSchema(
            "QuickGelu",
            "com.microsoft",
            1,
            inputs=[formal("X", "T")],
            outputs=[formal("Y", "T")],
            type_constraints=floats,
        )
    )
    try:
        network = made(Wishes(nodes=4, operators=(OP, "Neg"), dtypes=("float32",), woven=0.0), Random(1), Support())
    finally:
        onnx.defs.deregister_schema("QuickGelu", 1, "com.microsoft")
    assert OP in {node.op for node in network.draft.nodes}

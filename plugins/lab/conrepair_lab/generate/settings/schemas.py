"""What ONNX's schemas say of operators."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx

from conrepair.ground.runtime.errors import ConrepairError
from conrepair_lab.generate.settings.tensors import BOOL, NUMERIC, in_schema

VARIADIC = onnx.defs.OpSchema.FormalParameterOption.Variadic


class SpecificationError(ConrepairError):
    """A specification of an operator that ONNX doesn't know; the text says which file has it."""


@dataclass(frozen=True)
class Formal:
    """An input or output, as a schema says it.

    Attributes:
        name: Its own.
        type_str: Its type variable, or type.
        option: Whether there's one, or none, or a list of them.
        is_homogeneous: Whether those of a list have one type.
    """

    name: str
    type_str: str
    option: Any
    is_homogeneous: bool


@dataclass(frozen=True)
class Schema:
    """What is asked of a schema again and again: ONNX's own makes all of it anew each time.

    Attributes:
        inputs: In order.
        outputs: In order.
        places: Of inputs, by name.
        attributes: As ONNX has them, by name.
        type_constraints: As ONNX has them.
        since_version: The opset that it came with.
    """

    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    places: Mapping[str, int]
    attributes: Mapping[str, Any]
    type_constraints: tuple[Any, ...]
    since_version: int


@cache
def schema_of(op: str, opset: int) -> Schema:
    """An operator's schema; its domain is before its name where it isn't the standard's.

    Raises:
        SpecificationError: if ONNX has none.
    """
    domain, _, name = op.rpartition("::")
    try:
        return _read(onnx.defs.get_schema(name, opset, domain))
    except onnx.defs.SchemaError as error:
        from conrepair_lab.generate.specifications.specification import specifications  # they import this

        found = specifications().get(op)
        place = "" if found is None else f"{inspect.getfile(found.body)}: "
        raise SpecificationError(
            f"{place}ONNX {onnx.__version__} has no schema of {op} in opset {opset}. Register one before its "
            "specification (onnx.defs.register_schema), or take the specification out."
        ) from error


def _read(schema: Any) -> Schema:
    inputs, outputs = (
        tuple(Formal(item.name, item.type_str, item.option, item.is_homogeneous) for item in formals)
        for formals in (schema.inputs, schema.outputs)
    )
    places = {item.name: place for place, item in enumerate(inputs)}
    return Schema(
        inputs, outputs, places, dict(schema.attributes), tuple(schema.type_constraints), schema.since_version
    )


@cache
def dtypes_of(op: str, opset: int, variable: str) -> tuple[str, ...]:
    """Element types that a schema allows for a type variable."""
    schema = schema_of(op, opset)
    texts = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == variable), [variable])
    found = (in_schema(text) for text in texts)
    return tuple(dtype for dtype in found if dtype is not None and dtype in NUMERIC + BOOL)

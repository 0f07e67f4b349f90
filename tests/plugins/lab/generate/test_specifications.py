"""Each operator's specification against ONNX Runtime: what it allows runs as predicted, what runs it allows."""

from __future__ import annotations

import functools
from random import Random

import onnx
import pytest

from benchmarks.generate.constraints import measured
from conrepair.ground.operators.all_operators import OPERATORS
from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.settings.drawing import Drawing, Fresh
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.specifications.specification import specifications
from conrepair_lab.generate.support import Probed

OPSET = 20
"""Of the models; newer operators have the first that has them."""

SUPPORT = functools.cache(lambda opset: Probed(opset, accepted))


@pytest.mark.parametrize("count", [8, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("op", "opset"), [(name, max(OPSET, item.least_opset)) for name, item in specifications().items()]
)
def test_a_specification_says_what_the_runtime_takes(op: str, opset: int, count: int) -> None:
    found = measured(op, opset, count, seed=1000, support=SUPPORT(opset))
    assert found.inside == count
    assert not found.wrong
    assert found.recall_explained > 0.9


def test_elementwise_operators_of_the_records_have_specifications() -> None:
    names = {name for name, item in OPERATORS.items() if item.operands and onnx.defs.has(name)}
    assert names <= specifications().keys()
    assert specifications()["Swish"].least_opset == 24
    drawn = set()
    for seed in range(40):
        setting = Drawing("HardSigmoid", 20, Random(seed), Support(), source=Fresh(64), most=64)
        specifications()["HardSigmoid"].body(setting)
        drawn.add(setting.attributes.get("alpha"))
    assert {0.2, 1 / 6} <= drawn, "the record's default, and another usual one"

"""Each operator's specification against ONNX Runtime: what it allows runs as predicted, what runs it allows."""

from __future__ import annotations

import pytest

from benchmarks.generate.constraints import measured
from conrepair.generate.running import accepted
from conrepair.generate.specifications.registry import specifications
from conrepair.generate.support import Probed

OPSET = 20
SUPPORT = Probed(OPSET, accepted)


@pytest.mark.parametrize("op", [name for name, item in specifications().items() if item.least_opset <= OPSET])
def test_a_specification_says_what_the_runtime_takes(op: str) -> None:
    found = measured(op, OPSET, 20, seed=1000, support=SUPPORT)
    assert found.inside == 20
    assert not found.wrong
    assert found.recall_explained > 0.9

"""Operators in front of a tensor: what is solved has that tensor as its output, and ONNX Runtime agrees."""

from __future__ import annotations

import collections
from random import Random

import numpy as np
import pytest

from benchmarks.generate.settings import Case, accepts, inside
from conrepair.generate.running import accepted
from conrepair.generate.setting import NotAllowedError
from conrepair.generate.solving import Solving
from conrepair.generate.specifications.registry import specifications
from conrepair.generate.support import Probed

OPSET = 20
SUPPORT = Probed(OPSET, accepted)


@pytest.mark.parametrize("op", [name for name, item in specifications().items() if item.least_opset <= OPSET])
def test_a_solved_operator_makes_what_it_should(op: str) -> None:
    random, generator = Random(3), np.random.default_rng(3)
    seen: collections.Counter[bool] = collections.Counter()
    for _ in range(30):
        case = inside(op, OPSET, random, SUPPORT)
        assert case is not None
        target = case.predicted[0]
        if target is None:
            continue
        setting = Solving(op, OPSET, random, SUPPORT, target=target)
        try:
            specifications()[op].body(setting)
            setting.solved()
        except NotAllowedError:
            seen[False] += 1
            continue
        seen[True] += 1
        outputs = tuple(setting.outputs)
        assert outputs[0] == target
        solved = Case(op, OPSET, tuple(setting.inputs), dict(setting.attributes), (True,) * len(outputs), outputs)
        assert accepts(solved, generator) is None
    assert not seen or seen[True]

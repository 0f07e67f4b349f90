"""Operators in front of a tensor: what is solved has that tensor as its output, and ONNX Runtime agrees."""

from __future__ import annotations

import collections
import functools
from random import Random

import numpy as np
import pytest

from benchmarks.generate.settings import Case, accepts, inside
from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.settings.ports import NotAllowedError
from conrepair_lab.generate.settings.solving import Solving
from conrepair_lab.generate.specifications.specification import specifications
from conrepair_lab.generate.support import Probed

OPSET = 20
"""Of the models; newer operators have the first that has them."""

_MOST = 30
SUPPORT = functools.cache(lambda opset: Probed(opset, accepted))


@pytest.mark.parametrize("count", [12, pytest.param(_MOST, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("op", "opset"), [(name, max(OPSET, item.least_opset)) for name, item in specifications().items()]
)
def test_a_solved_operator_makes_what_it_should(op: str, opset: int, count: int) -> None:
    random, generator = Random(3), np.random.default_rng(3)
    seen: collections.Counter[bool] = collections.Counter()
    for number in range(_MOST):
        if number >= count and seen[True]:
            break  # one that is seldom solved gets as many as a whole run draws
        case = inside(op, opset, random, SUPPORT(opset))
        assert case is not None
        target = case.predicted[0]
        if target is None:
            continue
        setting = Solving(op, opset, random, SUPPORT(opset), target=target)
        try:
            specifications()[op].body(setting)
            setting.solved()
        except NotAllowedError:
            seen[False] += 1
            continue
        seen[True] += 1
        outputs = tuple(setting.outputs)
        assert outputs[0] == target
        solved = Case(op, opset, tuple(setting.inputs), dict(setting.attributes), (True,) * len(outputs), outputs)
        assert accepts(solved, generator) is None
    assert not seen or seen[True]

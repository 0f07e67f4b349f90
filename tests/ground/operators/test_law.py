"""What every operator has: a value, a derivative and a bound, or a reason why not; and they agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from conrepair.ground.operators.all_operators import OPERATORS
from conrepair.ground.operators.record import Operator
from conrepair.verdicts.truth.bound import Analysis, Bounded
from conrepair.verdicts.truth.rules import estimate, rule_of

Array = np.ndarray[Any, Any]
OPSET, ULPS, DRAWN = 24, 4.0, 300
ELEMENTWISE = {name: item for name, item in OPERATORS.items() if item.operands in {1, 2} and name != "Cast"}
REAL = {name: item for name, item in ELEMENTWISE.items() if not item.logical}
DERIVED = {name: item for name, item in REAL.items() if callable(item.derivative)}
SAID: dict[str, dict[str, Any]] = {"Clip": {"min": -1.5, "max": 2.0}}
OTHERWISE = (
    {"Gelu": {"approximate": "tanh"}, "Shrink": {"bias": 0.25}},
    {"Celu": {"alpha": 1.5}, "Swish": {"alpha": 0.5}},
)
SPECIALS = (
    0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.0, -3.0, 0.5, -0.5, 88.0, -88.0, -104.0, 3e38, 1e-38, 1e-45,
)  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_each_has_a_value_a_derivative_and_a_bound_or_says_why_not(name: str) -> None:
    item = OPERATORS[name]
    for said in (item.value, item.derivative):
        assert callable(said) or len(said) > 10
    bounded = rule_of(name)[0] is not estimate
    assert bounded != bool(item.unbounded), "a rule in `conrepair.verdicts.truth.rules`, or turns, or a reason"
    assert not item.operands or callable(item.value)


def test_what_rounds_nothing_is_known_as_that_to_the_bounds() -> None:
    for name, item in OPERATORS.items():
        known = rule_of(name)[1] == 0.0
        assert known == item.exact or name == "Cast" or item.unbounded, name


def given(item: Operator, name: str) -> list[dict[str, Any]]:
    return [SAID.get(name, {}), *(said[name] for said in OTHERWISE if name in said)]


def drawn(item: Operator, low: float = -4.0, high: float = 4.0) -> list[Array]:
    generator = np.random.default_rng(3)
    least, most = item.domain or (-np.inf, np.inf)
    pair = [generator.uniform(max(low, least), min(high, most), DRAWN) for _ in range(item.operands)]
    return [np.abs(pair[0]) + 0.1, *pair[1:]] if item.family == "arithmetic.power" else pair


@pytest.mark.parametrize("name", DERIVED)
def test_a_derivative_is_that_of_the_value(name: str) -> None:
    item = DERIVED[name]
    for said in given(item, name):
        operands = [array.astype(np.longdouble) for array in drawn(item)]
        attributes = item.given(said) if item.operands == 1 else {}
        found = item.derivative(*operands, **attributes)  # type: ignore[operator]
        for place, derived in enumerate([found] if item.operands == 1 else found):
            step = np.longdouble(1e-7) * np.maximum(np.abs(operands[place]), 1)
            moved = [
                [*operands[:place], operands[place] + sign * step, *operands[place + 1 :]] for sign in (-1, 0, 1)
            ]
            low, here, high = (np.asarray(item.compute(*each, **said), np.longdouble) for each in moved)
            before, behind = (here - low) / step, (high - here) / step
            smooth = np.abs(before - behind) <= 1e-3 * (1 + np.abs(behind))  # else it's kinked there, or has no value
            assert smooth.sum() > 0.95 * np.isfinite(here).sum() > DRAWN / 4
            wrong = np.abs((before + behind) / 2 - derived) > 1e-7 * (1 + np.abs(derived))
            assert not (wrong & smooth).any(), [array[wrong & smooth][:3] for array in operands]


COMPARISONS = {name for name, item in OPERATORS.items() if item.family == "comparison"}


def bounded(name: str, operands: Sequence[Array], said: dict[str, Any]) -> Bounded:
    """Of a network of the operator alone: the exact values, and how far float32's may be off."""
    feeds = {f"x{place}": array for place, array in enumerate(operands)}
    limits = {key: np.float32(said[key]) for key in ("min", "max") if key in said}
    graph = helper.make_graph(
        [helper.make_node(name, [*feeds, *limits], ["y"], **({} if limits else said))],
        "one",
        [helper.make_tensor_value_info(key, onnx.TensorProto.FLOAT, array.shape) for key, array in feeds.items()],
        [helper.make_value_info("y", onnx.TypeProto())],
        [numpy_helper.from_array(np.asarray(item), key) for key, item in limits.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)
    return Analysis(model).at(feeds, {name: ULPS} if rule_of(name)[1] else {})


OF_ONNX = [name for name in REAL if onnx.defs.has(name)]


@pytest.mark.parametrize("name", OF_ONNX)
def test_a_value_in_float32_is_within_the_bound_of_that_in_longdouble(name: str) -> None:
    item = REAL[name]
    operands = [array.astype(np.float32) for array in drawn(item, -20, 20)]
    specials = np.meshgrid(*[np.array(SPECIALS, np.float32)] * item.operands)
    operands = [np.concatenate([array, more.ravel()]) for array, more in zip(operands, specials, strict=True)]
    for said in given(item, name):
        found = bounded(name, operands, said)
        truth = found.truth["y"].astype(np.float64)
        with np.errstate(all="ignore"):
            wide = np.asarray(item.compute(*[array.astype(np.longdouble) for array in operands], **said), np.float64)
            single = np.asarray(item.compute(*operands, **said))
            assert single.dtype == (bool if name in COMPARISONS else np.float32)
            for value in (wide, single.astype(np.float64)):
                same = (value == truth) | (np.isnan(value) & np.isnan(truth))
                wrong = ~same & ~(np.abs(value - truth) <= found.bound["y"])
                assert not wrong.any(), [array[wrong][:5] for array in (*operands, value, truth, found.bound["y"])]
        assert not found.estimated


def test_an_operator_without_them_breaks_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = Operator(np.tanh, "", operands=1)
    monkeypatch.setitem(OPERATORS, "Bare", bare)  # type: ignore[arg-type]
    monkeypatch.setitem(OPERATORS, "Bare", bare)  # type: ignore[arg-type]
    with pytest.raises(AssertionError):
        test_each_has_a_value_a_derivative_and_a_bound_or_says_why_not("Bare")
    for half in (
        Operator(np.tanh, "a reason of some words"),
        Operator(np.tanh, "", unbounded="because of its steps"),
    ):
        monkeypatch.setitem(OPERATORS, "Bare", half)  # type: ignore[arg-type]
        with pytest.raises(AssertionError):
            test_each_has_a_value_a_derivative_and_a_bound_or_says_why_not("Bare")

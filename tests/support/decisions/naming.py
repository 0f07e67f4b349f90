"""What is said to be wrong with a guilty piece."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from conrepair.diagnosis.localization.faces.attributes import _equal
from conrepair.diagnosis.localization.faces.composites import _in_pieces
from conrepair.diagnosis.localization.faces.diagnose import _apart
from conrepair.diagnosis.localization.faces.differences import _weight, _weight_of
from conrepair.diagnosis.localization.faces.numbers import changed, parameters, values
from conrepair.diagnosis.localization.faces.numbers.carried import CarriedParameter, _compared
from conrepair.diagnosis.localization.faces.numbers.grids import _lie_on, _slices
from conrepair.diagnosis.localization.faces.numbers.parameters import hide_alike, mask_words
from conrepair.diagnosis.localization.faces.recurrent.gates import _likest
from conrepair.diagnosis.localization.faces.recurrent.recurrent import _close
from conrepair.diagnosis.localization.faces.recurrent.turns import _is_rare, _usual
from conrepair.diagnosis.localization.faces.region import Finding, left_of
from conrepair.diagnosis.localization.faces.steps.functions import GRID, _stepped
from conrepair.diagnosis.localization.faces.steps.readings import pair_steps
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Parameter
from decisions.decision import Decision

__all__ = ["DECISIONS"]

_DRAWN = np.random.default_rng(0)
_ONE, _NOISE = _DRAWN.normal(size=(2, 20, 100))
_NOISE *= np.linalg.norm(_ONE) / np.linalg.norm(_NOISE)


def _parameter(array: np.ndarray, bits: int | None = None) -> Parameter:
    return Parameter("w", array.shape, "float32", lambda: array, bits, (1.0,) if bits else ())


def _step(op: str, *inputs: str) -> Step:
    return Step(op, {}, {}, (Node("n", "n", op, op, inputs, ("y",)),), inputs, ("y",))


def _words(found: tuple[Kind | None, str] | None) -> str:
    return "nothing" if found is None else " ".join(found[1].split()[:2])


def _changed(relative: float) -> str:
    found = parameters.difference(_ONE, _ONE + relative * _NOISE)
    return "nothing" if found is None else "something"


def _by_slice(off: float) -> str:
    return _words(values._channels(_ONE[None], ((1 + off) * _ONE + np.arange(1.0, 21.0)[:, None])[None]))


def _a_row(relative: float) -> bool:
    other = _ONE.copy()
    other[3] *= 1 + relative
    return changed.some_rows(_ONE, other, 1e-3) is not None


def _portion(off: float, next_: float) -> bool:
    """Whether an array that's off from one of two portions so much, and from the other by that, is the first one."""
    whole = np.concatenate([_ONE + off * _NOISE, _ONE + next_ * _NOISE])
    return changed.portion_of(whole, _ONE) is not None


def _carried(relative: float) -> bool:
    node = Node("n", "n", "Conv", "", (), ("y",))
    one, two = (
        CarriedParameter((node,), "weight", _parameter(array), array) for array in (_ONE, _ONE + relative * _NOISE)
    )
    return bool([*_compared(one, two)])


def _recurrent(error: float) -> str:
    nodes = [SimpleNamespace(parameters={"W": _parameter(_ONE, 2)})]
    region: Any = SimpleNamespace(expected=_ONE, computed=_ONE + error * _NOISE, target=SimpleNamespace(nodes=nodes))
    return f"{_close(region):.2g}"


def _levels(count: float) -> bool:
    right = np.random.default_rng(0).normal(size=2100)
    edges = np.linspace(right.min(), right.max(), int(count))
    return values._rounded(right, edges[np.abs(edges[:, None] - right).argmin(0)]) is not None


def _as_half(relative: float) -> str:
    half = _ONE.astype(np.float16).astype(np.float64)
    return _words(parameters._rounded(half * (1 + relative), half, half))


def _result_as(relative: float) -> str:
    half = _ONE.astype(ml_dtypes.bfloat16).astype(np.float64)
    return _words(values._rounded(half + relative * _NOISE, half))


def _on_grid(off: float) -> bool:
    return _lie_on(np.array([[1.0, 2.0, 3.0 + off]]), ("int8", np.ones((1, 1)), np.zeros((1, 1))))


def _at_border(share: float) -> bool:
    one, gap = np.zeros((1, 6, 6)), np.zeros((1, 6, 6))
    gap[0, 0, 0], gap[0, 3, 3] = np.sqrt(share), np.sqrt(1 - share)
    return values._border(one, gap) is not None


def _of_gate(cosine: float, size: int) -> bool:
    one, two = np.random.default_rng(1).normal(size=(2, 1, size))
    one /= np.linalg.norm(one)
    two -= (one * two).sum() * one
    two *= np.sqrt(1 - cosine**2) / np.linalg.norm(two)
    gate: Any = SimpleNamespace(sought=one)
    return _likest(cosine * one + two, 0, [gate], alone=False) is not None


def _hidden(low: float) -> bool:
    return hide_alike(np.array([0.0, low]), np.array([0.0, 1.01 * low]))


def _mask(size: int) -> bool:
    mask = np.arange(size) < size - 1
    return mask_words(mask, np.roll(mask, 1)) is not None


def _paired(source: str, target: str) -> str:
    found = pair_steps([*map(_step, source.split())], [*map(_step, target.split())])
    return (
        ", ".join(f"{one.op} {two.op}" for one, two in found if one and two and "Transpose" not in (one.op, two.op))
        or "none"
    )


def _turns(agreeing: int) -> bool:
    arrays = [np.full(2, float(max(place - agreeing + 1, 0))) for place in range(9)]
    group = [Node("n", "n", "Conv", "", (), (), {}, {"weight": _parameter(array)}) for array in arrays]
    return bool(_usual(group, "weight"))


def _faults(weight: float) -> int:
    """How many faults a difference of some weight makes beside another one."""
    found = [Finding(Kind.GRAPH, "", ("a",), (name,), weight=item) for name, item in (("a", 1.0), ("b", weight))]
    region: Any = SimpleNamespace(source=SimpleNamespace(nodes=()), target=LayerGraph((), (), {}, ()))
    return len(_apart(found, region))


def _weight_by(name: str, *, said: bool = True) -> float:
    differing: Any = SimpleNamespace(name=name, is_said=said)
    return _weight_of(differing, "Softmax")


_ONCE = (1.0,)
DECISIONS = [
    Decision("attributes that differ by {} are the same", lambda x: _equal(1.0, 1.0 + x), (7e-7, 1.4e-6)),
    Decision("weights off by {}", _changed, (7e-6, 1.4e-5)),
    Decision(
        "twice the weights, but for {}",
        lambda x: _words(changed.scaled(_ONE, 2 * _ONE + x * _NOISE, 0)),
        (1.4e-4, 2.8e-4),
    ),
    Decision(
        "a result twice as large, but for {}",
        lambda x: _words(values.relation(_ONE, 2 * _ONE + x * _NOISE)),
        (1.4e-3, 2.8e-3),
    ),
    Decision("slices that are shifted, and scaled by a factor off by {}", _by_slice, (3.5e-4, 7e-4)),
    Decision("a row off by {}, where rounding is by 0.001", _a_row, (2.8e-3, 5.6e-3)),
    Decision("{} places in reverse order", lambda x: changed.order_words(np.arange(int(x))[::-1]) or "-", (3, 5)),
    Decision("a portion off by {}", lambda x: _portion(x, 9.0), (0.35, 0.7)),
    Decision("a portion off by 0.1, and from the next one by {}", lambda x: _portion(0.1, x), (0.28, 0.56)),
    Decision("another layer's numbers off by {} are meant", _carried, (0.7, 1.4)),
    Decision("left at most of an error of {}", lambda x: f"{left_of(x):.2g}", (1e-3, 1.0)),
    Decision("left at most of an error of {}, by weights in 2 bits", _recurrent, (0.01, 0.1)),
    Decision("results of {} levels are rounded", _levels, (180, 360)),
    Decision(
        "{} numbers of float16 are stored so",
        lambda x: parameters.stored_as(np.ones(int(x), np.float32) / 3 // 0.01) is not None,
        (11, 22),
    ),
    Decision("weights of float16, off by {}", _as_half, (0.7 * 2**-10, 1.4 * 2**-10)),
    Decision("a result of bfloat16, off by {}", _result_as, (0.035, 0.07)),
    Decision("off a grid by {} of a step is on it", _on_grid, (1.4e-3, 2.8e-3)),
    Decision("ways to share a scale of {} values", lambda x: len([*_slices(*[np.ones(int(x))] * 2)]), (6, 12)),
    Decision("an error of which {} is at the border", _at_border, (0.7, 0.95)),
    Decision(
        "a function with jumps in {} of a grid's places",
        lambda x: _stepped(np.floor(GRID * x / 0.005) * 0.005 / x) is not None,
        (0.42, 0.84),
    ),
    Decision("10,000 numbers of a cosine of {} are a gate's", lambda x: _of_gate(x, 10_000), (0.35, 0.7)),
    Decision("4 numbers of a cosine of {} are a gate's", lambda x: _of_gate(x, 4), (0.7, 0.97)),
    Decision("36 numbers of a cosine of {} are a gate's", lambda x: _of_gate(x, 36), (0.58, 0.8)),
    Decision("{} added to scores hides them", _hidden, (-7e3, -1.4e4)),
    Decision("masks of {} places differ", lambda x: _mask(int(x)), (3, 6)),
    Decision("pairs of MatMul with Softmax", lambda _: _paired("MatMul", "Softmax"), _ONCE),
    Decision("pairs of Relu with Sigmoid", lambda _: _paired("Relu", "Sigmoid"), _ONCE),
    Decision(
        "pairs where {} transpositions stand in front, or behind",
        lambda x: _paired("Transpose " * int(x) + "MatMul", "MatMul" + " Transpose" * int(x)),
        (7, 14),
    ),
    Decision("{} operators for one", lambda x: _in_pieces(Counter(["Gelu"]), Counter({"Mul": int(x)})), (2, 4)),
    Decision("{} turns tell what's usual", lambda x: _is_rare(0, int(x), 9), (2, 5)),
    Decision("{} of 9 turns tell what's usual", lambda x: _turns(int(x)), (4, 7)),
    Decision("2 odd ones of {} turns", lambda x: _is_rare(2, int(x), 99), (4, 9)),
    Decision("faults, where one difference weighs {}", _faults, (0.7, 0.95)),
    Decision("how surely it's another axis", lambda _: _weight_by("axis"), _ONCE),
    Decision("how surely it's what one side doesn't say", lambda _: _weight_by("alpha", said=False), _ONCE),
    Decision("how surely it's what conversions write otherwise", lambda _: _weight_by("keepdims"), _ONCE),
    Decision("how surely it's a lost Relu", lambda _: _weight(_step("Relu", "x"), extra=False), _ONCE),
    Decision("how surely it's a lost Add", lambda _: _weight(_step("Add", "x", "y"), extra=False), _ONCE),
    Decision(
        "a difference that weighs {} is certain",
        lambda x: Finding(Kind.GRAPH, "", ("a",), ("a",), weight=x).is_certain,
        (0.14, 0.28),
    ),
]

"""Which pieces are guilty, and what answers, layers and ranges are said to be."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import numpy as np
from localizations import fault_of, row
from random_graphs import graph_of
from scipy.special import softmax

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.faces.diagnose import Diagnosis
from conrepair.diagnosis.localization.faces.region import Cuts, Side
from conrepair.diagnosis.localization.judge import doubtful
from conrepair.diagnosis.localization.judge.answers import explain_final_activation
from conrepair.diagnosis.localization.judge.conclusion import rules_of
from conrepair.diagnosis.localization.judge.hidden import _Runs
from conrepair.diagnosis.localization.judge.judgement import Judged, acquit_unread_bodies, is_above, judge_cut
from conrepair.diagnosis.localization.judge.label_mapping import explain_class_permutation
from conrepair.diagnosis.localization.judge.saturation import _places_of, _Saturated, is_small
from conrepair.diagnosis.localization.judge.static import _is_guarded
from conrepair.diagnosis.localization.judge.tensor_order import explain_output_order
from conrepair.diagnosis.localization.located import _as_one_training
from conrepair.diagnosis.localization.numbers import judging
from conrepair.diagnosis.localization.run.alone import is_unchanged
from conrepair.diagnosis.localization.run.baked_batch import _differ
from conrepair.diagnosis.localization.run.measurement import Cut
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Parameter
from conrepair.ground.metrics.running_error import RunningError
from decisions.decision import Decision

__all__ = ["DECISIONS"]

_DRAWN = np.random.default_rng(0)
_VALUES, _NOISE = _DRAWN.normal(size=4000), _DRAWN.normal(size=(400, 6))
_SCORES = _DRAWN.normal(size=(400, 6))


def _error(relative: float) -> RunningError:
    result = RunningError()
    result.add(_VALUES, _VALUES * (1 + relative))
    return result


def _cut(introduced: float, full: float, name: str = "t") -> Cut:
    pair = Pair(name, name, layouts((2, 3), (2, 3))[0], 1.0, "")
    return Cut(pair, _error(introduced), _error(full))


def _judged(introduced: float, quantization: float = 0.0) -> Judged:
    cut = _cut(introduced, introduced)
    return judge_cut(cut, operators=1, precision="float32", margin=10.0, quantization=quantization)


def _unread(came: float) -> bool:
    """Of a piece that is wrong as a whole, and one behind it with what came of that."""
    wrong = Judged(_cut(1.0, 1.0, "a"), 1.0, 1.0, 0.0, True, allowed=0.1)
    behind = Judged(_cut(0.0, came, "b"), 0.0, came, 0.0, False, allowed=0.1)
    return not acquit_unread_bodies([wrong, behind], {"a": ["b"], "b": []})[0].guilty


def _brought(left: float) -> bool:
    """Whether outputs that are off by 1 are so by a cut with which they're off by less."""
    pair = _cut(0.0, 0.0).pair

    def outputs(known: list[Pair], _: object = None) -> Any:
        fed = pair in known
        return SimpleNamespace(differs=not fed, outputs=[SimpleNamespace(decisive=left if fed else 1.0)])

    runs = SimpleNamespace(_cuts=[pair], _judged={}, outputs=outputs)
    found = _Runs.last_needed(cast("_Runs", runs), [])
    return found is not None and found[1] > 0


def _with(gap: float, rest: float) -> np.ndarray:
    """Scores of which two are nearly the same, each in the other's place, and noise of the rest of what differs."""
    moved = _near(gap)[:, [1, 0, 2, 3, 4, 5]]
    before = np.linalg.norm(moved - _near(gap)) / np.linalg.norm(_SCORES)
    return np.asarray(moved + rest * before * np.linalg.norm(_SCORES) / np.linalg.norm(_NOISE) * _NOISE)


def _near(gap: float) -> np.ndarray:
    scores = _SCORES.copy()
    scores[:, 1] = scores[:, 0] + gap * scores[:, 1]
    return scores


def _off(relative: float) -> np.ndarray:
    return np.asarray(_SCORES + relative * np.linalg.norm(_SCORES) / np.linalg.norm(_NOISE) * _NOISE)


def _softmax_added(error: float) -> bool:
    right = softmax(_SCORES, axis=-1)
    return explain_final_activation(_SCORES, right + error * right.std() * _NOISE) is not None


def _exchanged(error: float) -> bool:
    one = {"a": _SCORES, "b": -_SCORES}
    return explain_output_order(one, {"a": one["b"], "b": _off(error)}) is not None


def _training(off: int, layers: int, last: float = 0.1) -> bool:
    """Whether layers that are off by 0.1, the last one by another error, are so by their training."""
    weight = {"weight": Parameter("w", (1,), "float32", lambda: np.ones(1))}
    nodes = tuple(
        Node(name, name, "Conv", "", (), (f"t{name}",), parameters=weight) for name in map(str, range(layers))
    )
    errors = [0.1] * (off - 1) + [last]
    faults = [fault_of(row(place), target_layers=(str(place),)) for place in range(off)]
    found = [Diagnosis(fault, "", error) for fault, error in zip(faults, errors, strict=True)]
    return len(_as_one_training(found, LayerGraph((), (), {}, nodes))) == 1


def _rule(places: int) -> int:
    faults = [fault_of(row(place), differences=(("no bias", f"layer_{place}"),)) for place in range(places)]
    return len(rules_of(faults, LayerGraph((), (), {}, ())))


def _guarded(number: float) -> bool:
    operand = {"operand": Parameter("e", (1,), "float32", lambda: np.full(1, number))}
    node = Node("n", "n", "Add", "Add", ("x",), ("y",), parameters=operand)
    return _is_guarded(LayerGraph(("x",), ("y",), {}, (node,)), "y")


def _unchanged(relative: float) -> bool:
    one = _error(0.1)
    return is_unchanged(one, dataclasses.replace(one, difference=one.difference * (1 + relative)))


def _cut_off(share: float, lost: float) -> bool:
    return _Saturated((0.0, 1.0), (0.0, 9.0), share, lost).is_much(judging.BEYOND)


def _wrong_weight(times: float) -> bool:
    """Whether a piece in few bits that's off by 0.1 is so by a weight that's off by so many times that."""
    signs = np.where(np.arange(_SCORES.size).reshape(_SCORES.shape) % 2, 1.0, -1.0)
    off = _SCORES + 0.1 * times * signs * float(np.sqrt(np.mean(_SCORES**2)))
    real = Parameter("r", _SCORES.shape, "float32", lambda: _SCORES)
    few = Parameter("w", _SCORES.shape, "int8", lambda: off, 8, (0.1,))
    nodes = [Node("n", "n", "Conv", "Conv", (), (), parameters={"weight": item}) for item in (real, few)]
    side = Side(LayerGraph((), (), {}, ()), (), (), "")
    cuts = SimpleNamespace(sides=lambda _: (side, side))
    with mock.patch.object(doubtful, "pairings_of", return_value=[[nodes]]):
        return doubtful._has_wrong_weight(cast("Cuts", cuts), _judged(0.1, 0.1))


def _by_range(lost: float) -> bool:
    """Whether a piece that's off by 1 is so by a range in front of it that cuts off so much, of few values."""
    graph = graph_of(["t0"], [("n1", "Sin", ["t0"], ["t1"])], ["t1"])
    fault = fault_of(row(0, 1.0, source_tensor="t0", target_tensor="t1"), Kind.PRECISION)
    clipped = {"t0": _Saturated((0.0, 1.0), (0.0, 1.0), 0.0, lost)}
    measured = {name: _cut(0.0, 0.0, name).pair for name in ("t0", "t1")}
    right = cast("Any", dict.fromkeys(measured, np.ones(1)))
    return bool(_places_of(fault, clipped, right, graph, measured, judging.BEYOND))


DECISIONS = [
    Decision("one operator off by {} is guilty, with a margin of 10", lambda x: _judged(x).guilty, (6.7e-6, 1.4e-5)),
    Decision("off by {} is guilty, where bits explain 0.01", lambda x: _judged(x, 0.01).guilty, (0.028, 0.056)),
    Decision("off by {} is guilty, where bits explain 0.5", lambda x: _judged(x, 0.5).guilty, (0.5, 0.98)),
    Decision("off by {}, which bits explain, says that it's right", lambda x: _judged(x, 0.5).tells, (0.12, 0.25)),
    Decision("introduced {} times what the full run has is guilty", lambda x: is_above(x, 1.0, 0.1), (14.0, 28.0)),
    Decision("a piece off by 1 is acquitted, where {} comes behind it", _unread, (7e-3, 1.4e-2)),
    Decision("outputs off by 1, and by {} with a cut fed: by that", _brought, (0.35, 0.7)),
    Decision("off by 0.1 by a weight that's off by {} times that", _wrong_weight, (2.8, 5.6)),
    Decision("off by 1 by what a range in front cuts off, {}", _by_range, (0.35, 0.7)),
    Decision("sums of squares that differ by {} are the same", _unchanged, (7e-10, 1.4e-9)),
    Decision("answers behind a softmax, off by {}, are so by it", _softmax_added, (7e-3, 1.4e-2)),
    Decision("outputs, off by {} in the other order, are exchanged", _exchanged, (7e-3, 1.4e-2)),
    Decision("answers of two batch sizes, off by {}, differ", lambda x: _differ(_SCORES, _off(x)), (7e-3, 1.4e-2)),
    Decision(
        "classes exchanged, where {} of the error is left",
        lambda x: explain_class_permutation(_near(0.05), _with(0.05, x)) is not None,
        (0.07, 0.14),
    ),
    Decision("{} of as many layers off alike: another training", lambda x: _training(int(x), int(x)), (1, 2, 4, 5)),
    Decision("{} of 20 layers off alike: another training", lambda x: _training(int(x), 20), (11, 14, 16)),
    Decision("20 layers, one {} times as far off: one fault", lambda x: _training(20, 20, 0.1 * x), (7, 14)),
    Decision("rules of {} places", lambda x: _rule(int(x)), (1, 2, 3)),
    Decision("a share of {} cut off is much", lambda x: _cut_off(x, 0.5), (0.014, 0.028)),
    Decision("an error of {} by what's cut off is much", lambda x: _cut_off(0.5, x), (0.07, 0.14)),
    Decision("{} times a range is beyond it", lambda x: is_small((0.0, 1.0), 0.0, x, judging.BEYOND), (1.1, 2.2)),
    Decision("{} added guards a division", _guarded, (7e-3, 1.4e-2)),
]

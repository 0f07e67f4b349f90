"""Which tensors of two networks stand for the same value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from random_graphs import SHAPE, graph_of

from conrepair.diagnosis.localization.align import alignment, compensating, matching, settling
from conrepair.diagnosis.localization.align.compensating import Isolated
from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import ComparedNetworks, Likeness, Pair
from conrepair.diagnosis.localization.align.nearness import Nearness
from conrepair.diagnosis.localization.align.neighbourhood import Neighbourhood
from conrepair.diagnosis.localization.align.samples import Samples
from conrepair.diagnosis.localization.align.similarity import NEAREST, Similarity
from conrepair.diagnosis.localization.numbers import pairing
from decisions.decision import Decision

__all__ = ["DECISIONS"]

_PLAIN = layouts(SHAPE, SHAPE)[0]
_CHAIN = graph_of(["t0"], [("n1", "Sin", ["t0"], ["t1"]), ("n2", "Softmax", ["t1"], ["t2"])], ["t2"])
_RIGHT = np.random.default_rng(0).normal(size=SHAPE)
_OTHER = np.random.default_rng(1).normal(size=SHAPE)
_OTHER *= np.linalg.norm(_RIGHT) / np.linalg.norm(_OTHER)


class _Told(Isolated):
    """Says what it was told, whatever is fed."""

    def __init__(self, found: Mapping[str, float]) -> None:
        self._found = found

    def errors(self, pairs: object, wanted: object) -> Any:
        return self._found


def _pair(source: str, target: str, confidence: float = 1.0) -> Pair:
    return Pair(source, target, _PLAIN, confidence, "")


def _sides(*errors: float) -> ComparedNetworks:
    """A tensor, and tensors that differ from it by these relative errors."""
    names = [f"t{place}" for place in range(len(errors))]
    values = {name: _RIGHT + error * _OTHER for name, error in zip(names, errors, strict=True)}
    nodes = [(f"n{place}", "Sin", [], [name]) for place, name in enumerate(names)]
    one = Neighbourhood(graph_of([], nodes[:1], names[:1]), names[:1], dict.fromkeys(names[:1], SHAPE))
    other = Neighbourhood(graph_of([], nodes, names[-1:]), names, dict.fromkeys(names, SHAPE))
    similarity = Similarity(Samples(["t0"], lambda _: _RIGHT), Samples(names, values.__getitem__), NEAREST)
    return ComparedNetworks(one, other, similarity, Likeness())


def _alike(*errors: float) -> str:
    """Which of some tensors are the same as one."""
    sides = _sides(*errors)
    turned = Similarity(*reversed(sides.similarity._sides), NEAREST)
    found = matching._equal(ComparedNetworks(sides.target, sides.source, turned, Likeness()))[0]
    return " and ".join(f"{errors[place]:.3g}" for place in found) or "none"


def _nearer_or_there(error: float) -> str:
    places = np.array([0, 0]), np.array([0, 9])
    return ("that", "the nearer")[int(matching._assigned(*places, np.array([error, 1e-7]), (10, 10))[0])]


def _layout(shapes: float) -> tuple[int, ...]:
    cube, turned = (4, 4, 4, 4), (0, 2, 3, 1)
    told = next(item for item in layouts(cube, cube) if item.axes == (0, 1, 2, 3))
    suggested = layouts((2, 3, 4, 5), (2, 4, 5, 3))[0]
    assert suggested.axes == turned
    pairs = [Pair("", "", told, 1.0, ""), *[Pair("", "", suggested, 1.0, "")] * int(shapes), _pair("", "")]
    open_ = Pair("", "", layouts(cube, cube)[0], 1.0, "")
    return matching._with_usual_layouts([*pairs[:-1], open_], [True, *[False] * int(shapes), False])[-1].layout.axes


def _told_by_values(correlation: float) -> bool:
    other = correlation * _centred(_RIGHT) + np.sqrt(1 - correlation**2) * _orthogonal()
    names = ["t0"]
    side = Neighbourhood(graph_of([], [("n0", "Sin", [], names)], names), names, {"t0": SHAPE})
    similarity = Similarity(Samples(names, lambda _: _RIGHT), Samples(names, lambda _: other), pairing.EQUAL)
    return matching._guessed(ComparedNetworks(side, side, similarity, Likeness()), 0, 0, "")[1]


def _centred(values: np.ndarray) -> np.ndarray:
    return np.asarray((values - values.mean()) / np.linalg.norm(values - values.mean()))


def _orthogonal() -> np.ndarray:
    one, two = _centred(_RIGHT), _centred(_OTHER)
    return _centred(two - (one * two).sum() * one)


def _harmless(left: float) -> bool:
    return alignment._is_harmless(_sides(0.0, 1.0, 0.0), _pair("t0", "t1", 0.5), {"t1": left})


def _forgiven(before: float, now: float) -> bool:
    pairs = [_pair(name, name) for name in ("t0", "t1", "t2")]
    errors = {"t1": 0.5, "t2": before}
    feeding = {"t1": ("t0",), "t2": ("t1",)}
    return bool(compensating._forgiven(_CHAIN, pairs, errors, feeding, {"t1"}, _Told({"t2": now})))


def _taken_back(now: float) -> bool:
    pairs = [_pair(name, name) for name in ("t0", "t1", "t2")]
    group = [("t2", frozenset({"t1"}))]
    return bool(compensating._right_without(pairs, {"t2": 0.05}, group, set(), _Told({"t2": now})))


def _at_their_place(off: float) -> bool:
    """Whether of 200 tensors that are the same but for some noise most are found at their own place."""
    drawn = np.random.default_rng(0)
    mask = drawn.normal(size=(4, 6))
    names = list(map(str, range(200)))
    sides = [{name: mask * (1 + off * drawn.normal(size=mask.shape)) for name in names} for _ in range(2)]
    one, two = (Samples(names, side.__getitem__) for side in sides)
    near = Nearness(one, pairing.EQUAL, hidden=False).pairs(two)
    return int(np.sum(near.rows == near.columns)) > 190


def _moved(own: float, behind: float) -> bool:
    pair, reader = _pair("s2", "t2", 0.6), _pair("s4", "t4")
    instead = _pair("s1", "t1", 0.6)
    told = _Told({"t1": own, "t4": behind})
    found = settling._tried([pair, reader], {"t2": ["t4"]}, {"t2": 0.5, "t4": 0.5}, told, {"t2": instead})
    return found[0].target == "t1"


DECISIONS = [
    Decision("a tensor with a relative error of {} is the same", _alike, (7e-4, 1.4e-3)),
    Decision("the same of one with an error of 1e-5 and one with {}", lambda x: _alike(1e-5, x), (2e-4, 4e-4)),
    Decision("the same of one that's equal and one with an error of {}", lambda x: _alike(0, x), (2e-5, 4e-5)),
    Decision(
        "taken of one at the same place with an error of {}, and one at the other end with 1e-7",
        _nearer_or_there,
        (10**-6.7, 10**-5.8, 10**-5, 10**-3.5),
    ),
    Decision("how most lie where values tell one layout, and shapes another one {} times", _layout, (7, 14)),
    Decision("values that correlate by {} tell their layout", _told_by_values, (0.6, 0.95)),
    Decision("a guess off by 1, of which what reads it has {}, is harmless", _harmless, (7e-5, 1.4e-4)),
    Decision("forgiven where a softmax that was right has {} then", lambda x: _forgiven(0.0, x), (7e-7, 1.4e-6)),
    Decision("forgiven where a softmax off by 1e-4 has {} then", lambda x: _forgiven(1e-4, x), (1.1e-4, 2.1e-4)),
    Decision("an end off by 0.05 is right where {} is left without a pair before it", _taken_back, (3.5e-4, 7e-4)),
    Decision("most of 200 that are the same but for {} are found at their place", _at_their_place, (2e-4, 4e-4)),
    Decision("a guess off by 0.5 goes to what's off by {}", lambda x: _moved(x, 0.5), (0.022, 0.044)),
    Decision("the same for {} where what reads it comes four times nearer", lambda x: _moved(x, 0.12), (0.09, 0.2)),
    Decision("a guess goes to what's near where a reader's 0.5 becomes {}", lambda x: _moved(0.01, x), (0.4, 0.7)),
]

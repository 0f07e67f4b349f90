"""Tensors on which several runtimes in float64 agree, and those on which they don't."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from conrepair.ground.metrics.ulps import grid_of
from conrepair.ground.operators.record import Array
from conrepair.verdicts.truth.bound import Analysis, Bounded
from conrepair.verdicts.truth.judging import TEXTS, beside
from conrepair.verdicts.truth.referees import CannotJudgeError, Referee

ROUNDINGS = 16.0
"""Times float64's own running bound that two referees may be apart: their functions are good to some units."""

_FINER = grid_of("float64").unit / grid_of("float32").unit


@dataclass(frozen=True)
class Disagreement:
    """Two referees that can't both be right about a tensor.

    Attributes:
        tensor: Its name.
        one: A referee, and its answer there.
        two: Another one.
        index: The element of the largest difference, in float64's bounds.
        over: That difference, in bounds; infinite where nothing may differ.
        count: Elements that are apart.
    """

    tensor: str
    one: tuple[str, float]
    two: tuple[str, float]
    index: tuple[int, ...]
    over: float
    count: int

    @property
    def bounds(self) -> float:
        """That difference in bounds of the network's own type: a verdict that is clearer than this stands."""
        return self.over * _FINER

    def __str__(self) -> str:
        """In words."""
        sides = " and ".join(f"{name} says {value:.17g}" for name, value in (self.one, self.two))
        place = f" at {list(self.index)}" if self.index else ""
        return (
            f"{self.tensor}{place}: {sides}; {self.count} elements are more than {ROUNDINGS:g} float64 bounds apart"
        )


@dataclass(frozen=True)
class Agreed:
    """Who says the same of what a network computes on some inputs.

    Attributes:
        referees: The largest group that agrees on all outputs; one alone is believed by nobody else.
        disagreements: Between the first of the group and those who say otherwise.
    """

    referees: tuple[str, ...]
    disagreements: tuple[Disagreement, ...]


def agreed(referees: Sequence[Referee], model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Agreed:
    """Ask all referees, and compare answers by what rounding in float64 explains; some can't run every network.

    Args:
        referees: In the order in which they're believed.
        model: In its own types.
        feeds: In the same.
    """
    answers: dict[str, Mapping[str, Array]] = {}
    for referee in referees:
        with contextlib.suppress(CannotJudgeError):
            answers[referee.name] = referee.answers(model, feeds)
    try:
        bounded = Analysis(model).at(feeds)
    except Exception:  # noqa: BLE001 (the reference raises a dozen types; it has said so as a referee)
        bounded = None
    apart = {(one, two): _apart(one, two, answers, bounded) for one in answers for two in answers if one != two}
    groups = [tuple(two for two in answers if one == two or not apart[one, two]) for one in answers]
    group = max(groups, key=len, default=())
    found = [item for two in answers if two not in group for item in apart[group[0], two]]
    return Agreed(group, tuple(found))


def _apart(
    one: str, two: str, answers: Mapping[str, Mapping[str, Array]], bounded: Bounded | None
) -> list[Disagreement]:
    found = []
    for tensor, mine in answers[one].items():
        theirs = answers[two][tensor]
        if mine.shape != theirs.shape:
            found.append(Disagreement(tensor, (one, np.nan), (two, np.nan), (), np.inf, mine.size))
            continue
        texts, allowed = mine.dtype.kind in TEXTS, np.zeros(mine.shape)
        if not texts:
            allowed = np.abs(mine) * 2.0**-40 if bounded is None else bounded.bound[tensor] * _FINER * ROUNDINGS
        side = beside(theirs, mine, allowed)
        if side.beyond:
            values = [np.nan if texts else float(array[side.index]) for array in (mine, theirs)]
            sides, over = ((one, values[0]), (two, values[1])), side.bounds * ROUNDINGS
            found.append(Disagreement(tensor, *sides, side.index, over, side.beyond))
    return found

"""Where an answer passes through zero: its relative error, and its condition, are largest there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.ground.operators.record import Array

_STEPS = 12
_TRIED = 4  # elements, of which the one is taken that changes most
_NEAR = 2.0**-22  # of that change


def numbers(outputs: Sequence[Array]) -> Array:
    """All real numbers of an answer, [elements]; 0 in place of what isn't finite."""
    every = np.concatenate([np.zeros(0), *(array.ravel() for array in outputs if array.dtype.kind == "f")])
    return np.where(np.isfinite(every), every, 0.0)


@dataclass
class Crossing:
    """Two points between which an element of the answers changes its sign, drawn together (Ridders' rule).

    Attributes:
        place: Of the point that it began from.
        element: Of the answers.
        ends: The two points.
        values: Of the element there.
        steps: That were made.
        following: The point behind one in the middle; None before that.
    """

    place: int
    element: int
    ends: list[Array]
    values: list[float]
    steps: int = 0
    following: Array | None = None

    def __post_init__(self) -> None:
        self._near = _NEAR * abs(self.values[0] - self.values[1])

    @property
    def nearest(self) -> Array:
        """The end at which the element is nearer to zero."""
        return self.ends[int(np.argmin(np.abs(self.values)))]

    @property
    def going(self) -> bool:
        """Whether another step may come nearer."""
        return self.steps < _STEPS and self.values[0] * self.values[1] < 0 and min(map(abs, self.values)) > self._near

    def point(self) -> Array:
        """The next one between both."""
        self.steps += 1
        return np.asarray(sum(self.ends) / 2 if self.following is None else self.following)

    def told(self, point: Array, outputs: Sequence[Array]) -> None:
        """Put the point in place of the end with its sign."""
        answers, (one, two), (near, far) = numbers(outputs), self.ends, self.values
        value = float(answers[self.element]) if self.element < len(answers) else 0.0
        away = np.sign(near - far) * value / np.sqrt(value * value - near * far)
        self.following = one + (1 + away) / 2 * (two - one) if self.following is None else None
        side = int((value > 0) == (far > 0))
        self.ends[side], self.values[side] = point, value


def begun(place: int, points: Array, answers: Sequence[Array], generator: np.random.Generator) -> list[Crossing]:
    """A crossing from a point to another one, if an element has another sign there.

    Args:
        place: Of the point.
        points: [count, size].
        answers: Of each point, as `numbers` gives them.
        generator: Draws the other point and the element.
    """
    other = int(generator.integers(len(points)))
    one, two = answers[place], answers[other]
    elements = np.flatnonzero(one * two < 0) if one.shape == two.shape else ()
    if not len(elements):
        return []
    drawn = generator.choice(elements, _TRIED)
    element = int(drawn[np.abs(one[drawn] - two[drawn]).argmax()])
    return [Crossing(place, element, [*points[[place, other]]], [float(one[element]), float(two[element])])]

"""Both sides of a model, searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from conrepair.formats.models.runnable import Array, Runnable
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair_lab.tracing.search.objectives import OBJECTIVES
from conrepair_lab.tracing.search.space import space_of
from conrepair_lab.tracing.searching import Sides, search_inputs

X, Y = TensorSpec("x", (1, 4), "float32"), TensorSpec("y", (1, 4), "float32")


class Side(Runnable):
    """A function of one input."""

    inputs, outputs = (X,), (Y,)

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self._function = function

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        return {"y": self._function(feeds["x"])}


def test_answers_are_flipped_by_small_changes_of_samples() -> None:
    given = {"x": np.array([[1, 2, 3, 2.7]], np.float32)}
    space = space_of([X], around=[given])
    one, two = Side(lambda x: x * np.array([1, 1, 1, 1.05], np.float32)), Side(lambda x: x)
    found = {}
    for name in ("answers", "flip"):
        sides = Sides(one, two, space, OBJECTIVES[name])
        found[name] = search_inputs(sides, "mega", evaluations=1500, seconds=60, seed=0, given=[given])
    far = [np.abs(item.best[0].feeds["x"] - given["x"]).max() for item in found.values()]
    assert found["answers"].best[0].score == 1
    assert 1.8 < found["flip"].best[0].score < 2
    assert far[1] < 0.25


def test_how_far_inputs_are_from_their_sample() -> None:
    rows = [{"x": np.full((1, 4), value, np.float32)} for value in (1, 2)]
    space = space_of([X], around=rows)
    point = np.zeros(space.size)
    point[0] = 0.5
    assert space.distance(point, space.feeds(point)) == 0
    assert space.distance(point, rows[0]) == pytest.approx(0.5)
    assert space_of([X]).distance(point[1:], rows[0]) == 2

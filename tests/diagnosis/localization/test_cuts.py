"""What each cut is computed from, and what is computed from it."""

from __future__ import annotations

from random_graphs import SHAPE, graph_of

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair, feeding_of, readers_of

GRAPH = graph_of(
    ["x"],
    [
        ("n0", "Tanh", ["x"], ["a"]),
        ("n1", "Sin", ["a"], ["b"]),
        ("n2", "Sin", ["a"], ["inner"]),  # no cut
        ("n3", "Abs", ["b", "inner"], ["y"]),
    ],
    ["y"],
)
PAIRS = [Pair(f"source {name}", name, layouts(SHAPE, SHAPE)[0], 1.0, "") for name in "aby"]


def test_cuts_are_computed_from_the_nearest_ones_and_from_inputs() -> None:
    feeding = feeding_of(GRAPH, PAIRS)
    assert {name: set(feeding[name]) for name in "aby"} == {"a": {"x"}, "b": {"a"}, "y": {"a", "b"}}


def test_readers_are_the_cuts_that_are_computed_from_one() -> None:
    assert readers_of(PAIRS, feeding_of(GRAPH, PAIRS)) == {"x": ["a"], "a": ["b", "y"], "b": ["y"]}
    assert readers_of(PAIRS[:1], {"y": ["a"]}) == {}, "of pairs only"

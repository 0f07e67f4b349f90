"""Which pairs contradict one another, against paths in both graphs."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import SHAPE, disguised, graphs

from conrepair.graph.layer_graph import LayerGraph
from conrepair.localization.crossing import contradictions, in_order, without_crossing
from conrepair.localization.neighbourhood import Neighbourhood


def needs(graph: LayerGraph, begin: str, end: str) -> bool:
    readers = {node.name for node in graph.consumers[begin]}
    return any(node.name in readers for node in graph.between([], [end]))


@settings(deadline=None, max_examples=50)
@given(graphs(), st.integers(0, 10_000))
def test_pairs_contradict_where_paths_do(graph: LayerGraph, seed: int) -> None:
    theirs, _ = disguised(graph, seed, extra=False)
    sides = [Neighbourhood(item, list(item.order), dict.fromkeys(item.order, SHAPE)) for item in (graph, theirs)]
    generator = np.random.default_rng(seed)
    count = len(sides[0].names)
    pairs = list(zip(generator.permutation(count).tolist(), generator.permutation(count).tolist(), strict=True))
    crossed = contradictions(*sides, pairs)
    ours, theirs_of = ([side.names[pair[number]] for pair in pairs] for number, side in enumerate(sides))
    for one in range(count):
        for two in range(count):
            forth = needs(graph, ours[one], ours[two]) and needs(theirs, theirs_of[two], theirs_of[one])
            back = needs(graph, ours[two], ours[one]) and needs(theirs, theirs_of[one], theirs_of[two])
            assert bool(crossed[one] >> two & 1) == (forth or back)
    stay = without_crossing(crossed)
    assert not any(crossed[one] >> two & 1 for one in stay for two in stay)
    half = stay[: len(stay) // 2]
    added = in_order(crossed, half)
    assert set(added).isdisjoint(half)
    both = [*half, *added]
    assert not any(crossed[one] >> two & 1 for one in both for two in both)
    for place in set(range(count)) - set(both):
        assert any(crossed[place] >> other & 1 for other in both)


def test_the_pair_that_contradicts_most_goes_and_of_two_the_worse() -> None:
    assert without_crossing([0b1000, 0b1000, 0b1000, 0b0111]) == [0, 1, 2]
    assert without_crossing([0b1110, 0b0001, 0b0001, 0b0001]) == [1, 2, 3]
    assert without_crossing([0b10, 0b01]) == [0]
    assert without_crossing([]) == []

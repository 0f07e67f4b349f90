"""The assignment on random graphs that are written in another way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import Computed, all_values, disguised, drawn_feeds, graph_of, graphs

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import ComparedNetworks, Pair, _with_usual_layouts, match
from conrepair.diagnosis.localization.align.neighbourhood import Neighbourhood
from conrepair.diagnosis.localization.align.samples import Samples
from conrepair.diagnosis.localization.align.similarity import Similarity
from conrepair.diagnosis.localization.numbers.pairing import EQUAL
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Tensor

Array = np.ndarray
seeds = st.integers(0, 10_000)


def values_of(network: Computed, feeds: dict[str, Array]) -> dict[str, Array]:
    return {name: all_values(network, feeds)[name] for name in network.graph.order}


def matched(ours: LayerGraph, mine: dict[str, Array], theirs: LayerGraph, full: dict[str, Array]) -> list[Pair]:
    names = list(ours.order), list(theirs.order)
    nodes = tuple(
        Neighbourhood(graph, list(graph.order), {name: values[name].shape for name in graph.order})
        for graph, values in ((ours, mine), (theirs, full))
    )
    samples = Samples(names[0], mine.__getitem__), Samples(names[1], full.__getitem__)
    similarity = Similarity(*samples, EQUAL)
    return match(ComparedNetworks(*nodes, similarity))


def paired(source: Computed, target: Computed, names: dict[str, str]) -> list[Pair]:
    feeds = drawn_feeds(source.graph)
    given_to_target = {names[name]: array for name, array in feeds.items()}
    return matched(source.graph, values_of(source, feeds), target.graph, values_of(target, given_to_target))


def needs(graph: LayerGraph, begin: str, end: str) -> bool:
    readers = {node.name for node in graph.consumers[begin]}
    return any(node.name in readers for node in graph.between([], [end]))


def assert_monotone(pairs: list[Pair], ours: LayerGraph, theirs: LayerGraph) -> None:
    assert len({pair.source for pair in pairs}) == len({pair.target for pair in pairs}) == len(pairs)
    for one in pairs:
        for two in pairs:
            assert not (needs(ours, one.source, two.source) and needs(theirs, two.target, one.target)), (one, two)


def unique(values: dict[str, Array]) -> set[str]:
    """Names of tensors that no other has the values of."""
    return {
        name
        for name, array in values.items()
        if not any(other != name and np.array_equal(array, values[other]) for other in values)
    }


@settings(deadline=None, max_examples=50)
@given(graphs(), seeds)
def test_a_graph_in_other_words_is_recognised(graph: LayerGraph, seed: int) -> None:
    """Renamed, in another order, with copies in between: each tensor's partner is itself, or a copy of it."""
    source = Computed(graph)
    theirs, names = disguised(graph, seed)
    target = Computed(theirs)
    pairs = paired(source, target, names)
    assert_monotone(pairs, graph, theirs)
    mine = values_of(source, drawn_feeds(graph))
    full = values_of(target, {names[name]: array for name, array in drawn_feeds(graph).items()})
    for pair in pairs:
        np.testing.assert_allclose(full[pair.target], mine[pair.source], rtol=EQUAL, atol=1e-6)
        assert pair.layout.is_plain
        assert pair.confidence == 1.0
    assert unique(mine) <= {pair.source for pair in pairs}


@settings(deadline=None, max_examples=50)
@given(graphs(), seeds, st.data())
def test_a_fault_moves_nothing_in_front_of_it(graph: LayerGraph, seed: int, data: st.DataObject) -> None:
    source = Computed(graph)
    theirs, names = disguised(graph, seed, extra=False)
    back = {new: old for old, new in names.items()}
    faulty = data.draw(st.sampled_from(theirs.nodes))
    target = Computed(theirs, {faulty.name: lambda x: 0.3 * x + np.float32(0.9)})
    pairs = paired(source, target, names)
    assert_monotone(pairs, graph, theirs)
    mine = values_of(source, drawn_feeds(graph))
    behind = {name for name in theirs.tensors if any(needs(theirs, given, name) for given in faulty.outputs)}
    behind.update(faulty.outputs)
    right = {back[name] for name in theirs.tensors if name not in behind}
    found = {pair.source: back[pair.target] for pair in pairs}
    for name in right & unique(mine):
        assert found[name] == name


@settings(deadline=None, max_examples=50)
@given(graphs(one_output=True), seeds)
def test_a_missing_layer_is_missing(graph: LayerGraph, seed: int) -> None:
    """The source has copies that the target doesn't: whichever is paired, the values are the same."""
    theirs, names = graph, {name: name for name in graph.tensors}
    ours, names = disguised(graph, seed)
    target, source = Computed(theirs), Computed(ours)
    feeds = drawn_feeds(theirs)
    full = values_of(target, feeds)
    mine = values_of(source, {names[name]: array for name, array in feeds.items()})
    pairs = matched(ours, mine, theirs, full)
    assert_monotone(pairs, ours, theirs)
    for pair in pairs:
        np.testing.assert_array_equal(full[pair.target], mine[pair.source])
    assert unique(full) <= {pair.target for pair in pairs}


def test_values_that_a_fault_has_changed_still_tell_the_layout() -> None:
    """[batch, tokens, width] in [batch x tokens, width]: by shapes alone the rows could be in either order."""

    def graph(shape: tuple[int, ...]) -> LayerGraph:
        tensors = {name: Tensor(name, shape, "float32") for name in ("x", "y", "z")}
        nodes = tuple(Node(two, two, "Tanh", "Tanh", (one,), (two,)) for one, two in (("x", "y"), ("y", "z")))
        return LayerGraph(("x",), ("z",), tensors, nodes)

    generator = np.random.default_rng(0)
    mine = {name: generator.normal(size=(2, 5, 8)) for name in ("x", "y", "z")}
    changed = {name: (array + 0.05 * generator.normal(size=array.shape)) for name, array in mine.items()}
    changed["x"] = mine["x"]
    theirs = {name: array.reshape(10, 8) for name, array in changed.items()}
    pairs = matched(graph((2, 5, 8)), mine, graph((10, 8)), theirs)
    assert {pair.source: pair.target for pair in pairs} == {"x": "x", "y": "y", "z": "z"}
    assert all(pair.layout.is_plain for pair in pairs)


def pair_of(source: tuple[int, ...], target: tuple[int, ...], place: int) -> Pair:
    return Pair(f"s{place}", f"t{place}", layouts(source, target)[place], 0.5, "")


def test_what_values_do_not_tell_lies_as_most_do() -> None:
    cube, turned = (4, 4, 4, 4), (0, 2, 3, 1)
    choice = next(place for place, item in enumerate(layouts(cube, cube)) if item.axes == turned)
    known = pair_of(cube, cube, choice)
    plain = pair_of(cube, cube, 0)
    assert [pair.layout.axes for pair in _with_usual_layouts([known, plain], [True, False])] == [turned, turned]
    assert _with_usual_layouts([known, plain], [True, True]) == [known, plain]
    assert _with_usual_layouts([plain], [False])[0].layout == layouts(cube, cube)[0]
    by_shape = [pair_of((2, 3, 4, 5), (2, 4, 5, 3), 0) for _ in range(3)]
    told = [pair.layout.axes for pair in _with_usual_layouts([*by_shape, plain], [False] * 4)]
    assert told == [turned] * 4, "where only shapes say so"
    others = _with_usual_layouts(
        [*by_shape, plain, replace(plain, source="other"), plain], [False] * 3 + [True, False, False]
    )
    assert [pair.layout.axes for pair in others[3:]] == [(0, 1, 2, 3)] * 3, "values count more than shapes"
    flat = pair_of((4, 4), (4, 4), 0)
    assert _with_usual_layouts([known, flat], [True, False])[1] == flat, "of as many axes"


def test_of_equal_values_outputs_belong_together_whatever_they_are_called() -> None:
    nodes = [("a", "Sin", ["x"], ["a"]), ("b", "Identity", ["a"], ["b"]), ("c", "Identity", ["a"], ["c"])]
    source, target = (Computed(graph_of(["x"], nodes, [end])) for end in "cb")
    found = {pair.source: pair.target for pair in paired(source, target, {"x": "x"})}
    assert found == {"x": "x", "a": "a", "b": "c", "c": "b"}


def test_what_little_speaks_for_is_no_pair() -> None:
    """The source's second layer, which nobody reads, and what the target computes of its result."""
    common = [("a", "Tanh", ["x"], ["a"]), ("y", "Sin", ["a"], ["y"])]
    source = Computed(graph_of(["x"], [("own", "Sin", ["x"], ["own"]), *common], ["y"]))
    more = [("h", "Abs", ["y"], ["h"]), ("k", "Abs", ["h", "y"], ["k"])]
    target = Computed(graph_of(["x"], [*common, *more], ["y"]))
    found = {pair.source: pair.target for pair in paired(source, target, {"x": "x"})}
    assert found == {"x": "x", "a": "a", "y": "y"}

"""What surrounds a tensor: neighbours against cuts of the graph, weights up to a factor per channel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_graphs import SHAPE, graph_of, graphs

from conrepair.graph.layer_graph import LayerGraph, Node, Parameter, Tensor
from conrepair.localization.neighbourhood import Neighbourhood
from conrepair.localization.structure import Structure

Array = np.ndarray


@st.composite
def selections(draw: st.DrawFn) -> tuple[LayerGraph, list[str]]:
    graph = draw(graphs())
    return graph, [name for name in graph.order if draw(st.booleans())] or [next(iter(graph.order))]


def around(graph: LayerGraph, names: list[str]) -> Neighbourhood:
    return Neighbourhood(graph, names, dict.fromkeys(names, SHAPE))


@given(selections())
def test_before_is_what_a_cut_graph_reads(case: tuple[LayerGraph, list[str]]) -> None:
    graph, names = case
    nodes, feeding = around(graph, names), graph.feeding(names)
    for place, name in enumerate(names):
        found = {names[index] for index in nodes.before[place] if index >= 0}
        expected = set(feeding.get(name, ()))
        assert found <= expected
        assert len(found) == min(len(expected), nodes.before.shape[1])


@given(selections())
def test_behind_is_before_turned_round(case: tuple[LayerGraph, list[str]]) -> None:
    graph, names = case
    nodes = around(graph, names)
    limit = nodes.behind.shape[1]
    feeding = graph.feeding(names)
    for place, name in enumerate(names):
        readers = {other for other in names if name in feeding.get(other, ())}
        found = {names[index] for index in nodes.behind[place] if index >= 0}
        assert found <= readers
        assert len(found) == min(len(readers), limit)


@given(selections())
def test_before_and_behind_each_is_having_a_path(case: tuple[LayerGraph, list[str]]) -> None:
    graph, names = case
    nodes = around(graph, names)
    marked = {name: 1 << place for place, name in enumerate(names)}
    before, behind = nodes.before_each(marked, names), nodes.behind_each(marked, names)
    for row, one in enumerate(names):
        readers = {node.name for node in graph.consumers[one]}
        for column, two in enumerate(names):
            needed = bool(readers & {node.name for node in graph.between([], [two])})
            assert bool(before[column] >> row & 1) == needed
            assert bool(behind[row] >> column & 1) == needed


def all_pairs(ours: Neighbourhood, theirs: Neighbourhood) -> tuple[Array, Array]:
    """Rows and columns that are all pairs."""
    return np.arange(len(ours.names))[:, None], np.arange(len(theirs.names))[None, :]


def convolutions(*weights: Array, axis_of_batch: str = "x") -> LayerGraph:
    """A chain of convolutions with these weights, an activation behind each."""
    names = [axis_of_batch, *(f"{part}{place}" for place in range(len(weights)) for part in "ca")]
    nodes = []
    for place, weight in enumerate(weights):
        parameter = Parameter(f"w{place}", weight.shape, "float32", lambda weight=weight: weight)
        nodes += [
            Node(f"conv{place}", "", "Conv", "Conv", (names[2 * place],), (f"c{place}",), {}, {"weight": parameter}),
            Node(f"act{place}", "", "Relu", "Relu", (f"c{place}",), (f"a{place}",)),
        ]
    tensors = {name: Tensor(name, SHAPE, "float32") for name in names}
    return LayerGraph((names[0],), (names[-1],), tensors, tuple(nodes))


def weights(count: int = 4) -> list[Array]:
    return list(np.random.default_rng(0).normal(size=(count, 5, 5, 3, 3)).astype(np.float32))


def alike(ours: LayerGraph, theirs: LayerGraph) -> Array:
    """Evidence of the weights for the outputs of all convolutions."""
    sides = [around(graph, [f"c{place}" for place in range(len(graph.nodes) // 2)]) for graph in (ours, theirs)]
    return Structure(*sides).weights(*all_pairs(*sides))


@pytest.mark.parametrize("sign", [1, -1])
def test_weights_with_a_folded_normalization_are_the_same(sign: int) -> None:
    factors = sign * np.random.default_rng(1).uniform(0.1, 9, (4, 5, 1, 1, 1))
    ours = weights()
    found = alike(convolutions(*ours), convolutions(*(ours * factors).astype(np.float32)))
    assert np.diag(found) == pytest.approx([1, 1, 1, 0.5], abs=1e-4)  # behind the last there is none
    assert found[~np.eye(4, dtype=bool)].max() < 0.5 + 1e-4  # one of both may be another's


def test_factors_of_inputs_are_another_thing() -> None:
    factors = np.random.default_rng(1).uniform(0.1, 9, (4, 1, 5, 1, 1))
    ours = weights()
    found = alike(convolutions(*ours), convolutions(*(ours * factors).astype(np.float32)))
    assert np.diag(found).max() < 0.95


def test_dropped_and_moved_layers_are_told_by_their_weights() -> None:
    ours = weights()
    found = alike(convolutions(*ours), convolutions(ours[0], ours[2], ours[1]))
    before = (found[:, :] > 0.45).astype(int)
    assert before[0, 0]
    assert before[2, 1]
    assert before[1, 2]
    assert not before[3].any() or found[3].max() <= 0.5


def test_depthwise_weights_are_normalized_as_a_whole() -> None:
    """One number per channel would be 1 everywhere once it's divided by itself."""
    generator = np.random.default_rng(2)
    one, two = generator.normal(size=(2, 40, 1, 1, 1)).astype(np.float32)
    found = alike(convolutions(one, two), convolutions(one, two))
    assert found[0, 0] == pytest.approx(1.0)
    assert found[0, 1] < 0.6


def test_names_operators_and_places_are_evidence() -> None:
    ours = graph_of(["in"], [("a", "Sin", ["in"], ["p"]), ("b", "Tanh", ["p"], ["q"])], ["q"])
    theirs = graph_of(["IN:0"], [("k", "Sin", ["IN:0"], ["P:0"]), ("l", "Tanh", ["P:0"], ["r"])], ["r"])
    sides = around(ours, ["in", "p", "q"]), around(theirs, ["IN:0", "P:0", "r"])
    found = Structure(*sides).surface(*all_pairs(*sides))
    assert found.argmax(1).tolist() == [0, 1, 2]
    assert found[0, 0] == pytest.approx(1.0)
    assert found[2, 2] < found[1, 1]  # another name


def test_a_product_of_integers_is_whole_behind_its_scale_and_its_bias() -> None:
    """As ONNX Runtime's dynamic quantization writes a layer: only the last tensor is the source's."""

    def held(*shape: int) -> Parameter:
        return Parameter("", shape, "float32", lambda: np.ones(shape, np.float32))

    weight, bias = held(4, 4), held(4)
    nodes = (
        Node("q", "q", "DynamicQuantizeLinear", "", ("x",), ("q", "scale", "zero")),
        Node("p", "p", "MatMul", "", ("q",), ("p",), parameters={"weight": weight}),
        Node("c", "c", "Cast", "", ("p",), ("c",)),
        Node("s", "s", "Mul", "", ("scale",), ("s",), parameters={"operand": held()}),
        Node("m", "m", "Mul", "", ("c", "s"), ("m",)),
        Node("a", "a", "Add", "", ("m",), ("a",), parameters={"operand": bias}),
    )
    shapes = dict.fromkeys("xqpcma", (2, 4)) | {"scale": (), "zero": (), "s": ()}
    tensors = {name: Tensor(name, shape, "float32") for name, shape in shapes.items()}
    target = LayerGraph(("x",), ("a",), tensors, nodes)
    whole = Node("l", "l", "MatMul", "", ("x",), ("y",), parameters={"weight": weight, "bias": bias})
    ends = {name: Tensor(name, (2, 4), "float32") for name in "xy"}
    source = LayerGraph(("x",), ("y",), ends, (whole,))
    names = ["p", "c", "m", "a"]
    sides = around(source, ["y"]), around(target, names)
    (row,) = Structure(*sides).surface(*all_pairs(*sides))
    assert names[int(row.argmax())] == "a"
    assert row[names.index("a")] > row[names.index("m")] + 0.2

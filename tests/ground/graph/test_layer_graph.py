"""Cuts of a graph against a closure of its edges, written without an order of the nodes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_graphs import graph_of, graphs

from conrepair.ground.data.tensor_spec import Quantization
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Parameter, Tensor


def edges_of(graph: LayerGraph) -> set[tuple[str, str]]:
    return {(one, two) for node in graph.nodes for one in node.inputs if one for two in node.outputs}


def reaching(graph: LayerGraph, stops: set[str]) -> set[tuple[str, str]]:
    """Pairs of tensors with a path of at least one edge whose inner tensors aren't stops (Warshall's closure)."""
    found = edges_of(graph)
    for middle in graph.tensors:
        if middle not in stops:
            before, behind = (
                {one for one, two in found if two == middle},
                {two for one, two in found if one == middle},
            )
            found |= set(itertools.product(before, behind))
    return found


@st.composite
def cut_graphs(draw: st.DrawFn) -> tuple[LayerGraph, list[str], list[str]]:
    graph = draw(graphs())
    names = sorted(graph.tensors)
    return graph, draw(st.lists(st.sampled_from(names))), draw(st.lists(st.sampled_from(names), min_size=1))


@given(cut_graphs())
def test_between_is_what_has_a_path_that_no_cut_blocks(case: tuple[LayerGraph, list[str], list[str]]) -> None:
    graph, begin, end = case
    paths = reaching(graph, set(begin))
    wanted = set(end) | {one for one, two in paths if two in end and one not in begin}
    expected = [node.name for node in graph.nodes if wanted & set(node.outputs)]
    assert [node.name for node in graph.between(begin, end)] == expected


@given(cut_graphs(), st.booleans())
def test_nearest_is_all_that_has_a_path_by_its_distance(
    case: tuple[LayerGraph, list[str], list[str]], forward: bool
) -> None:
    graph, _, begin = case
    far, reached = dict[str, int](), set(begin)
    for distance in range(len(graph.nodes)):
        near = [node for node in graph.nodes if reached & set(node.inputs if forward else node.outputs)]
        far = {node.name: far.get(node.name, distance) for node in near}
        reached |= {name for node in near for name in (node.outputs if forward else node.inputs) if name}
    found = [node.name for node in graph.nearest(begin, forward=forward)]
    assert sorted(found) == sorted(far)
    assert [far[name] for name in found] == sorted(far.values())


@given(cut_graphs())
def test_feeding_is_the_nearest_of_a_selection(case: tuple[LayerGraph, list[str], list[str]]) -> None:
    graph, fed, _ = case
    paths = reaching(graph, set(fed))
    computed = {name for node in graph.nodes for name in node.outputs}
    found = graph.feeding(fed)
    assert set(found) == computed
    for name in computed:
        assert set(found[name]) == {one for one in fed if (one, name) in paths}
        assert list(found[name]) == sorted(found[name], key=graph.order.__getitem__)


@given(graphs())
def test_the_order_has_every_tensor_behind_those_that_it_needs(graph: LayerGraph) -> None:
    assert sorted(graph.order.values()) == list(range(len(graph.tensors)))
    assert set(graph.order) == set(graph.tensors)
    assert all(graph.order[one] < graph.order[two] for one, two in edges_of(graph))
    assert all(graph.order[name] < len(graph.inputs) for name in graph.inputs)


@given(graphs())
def test_producers_and_consumers_are_the_edges(graph: LayerGraph) -> None:
    both = {(name, node.name) for name, nodes in graph.consumers.items() for node in nodes}
    assert both == {(name, node.name) for node in graph.nodes for name in node.inputs if name}
    assert {(name, node.name) for name, node in graph.producers.items()} == {
        (name, node.name) for node in graph.nodes for name in node.outputs
    }


def test_an_end_that_is_known_is_computed_all_the_same() -> None:
    graph = graph_of(["x"], [("a", "Sin", ["x"], ["p"]), ("b", "Tanh", ["p"], ["q"])], ["q"])
    assert [node.name for node in graph.between(["p", "q"], ["q"])] == ["b"]
    assert [node.name for node in graph.between(["x"], ["q"])] == ["a", "b"]


@pytest.mark.parametrize(
    ("dtype", "size"), [("float32", 96), ("float16", 48), ("bfloat16", 48), ("float64", 192), ("int64", 192)]
)
def test_bytes_of_a_tensor(dtype: str, size: int) -> None:
    assert Tensor("t", (2, 3, 4), dtype).nbytes == size
    assert Tensor("t", None, dtype).nbytes is None
    assert Tensor("t", (2, 3, 4), dtype).is_real == (dtype != "int64")


@pytest.mark.parametrize(("dtype", "zero_point", "held"), [("int8", -28, (-5.0, 7.75)), ("uint8", 0, (0.0, 12.75))])
def test_what_a_quantized_tensor_holds(dtype: str, zero_point: int, held: tuple[float, float]) -> None:
    assert Tensor("t", (2,), dtype, Quantization(0.05, zero_point)).stored == pytest.approx(held)


@pytest.mark.parametrize(
    "tensor",
    [Tensor("t", (2,), "int8"), Tensor("t", (2,), "int32", Quantization(0.05, 0)), Tensor("t", (), "float32")],
)
def test_what_holds_anything(tensor: Tensor) -> None:
    assert tensor.stored is None


def test_repeated_are_nodes_of_equal_numbers_whatever_these_are_called() -> None:
    """Parts of one parameter share its name; copies of numbers may have names of their own."""
    halves = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    weights = [("w", halves[0]), ("w", halves[1]), ("w", halves[0])]
    nodes = [
        Node(f"n{place}", f"n{place}", "MatMul", "linear", ("x",), (f"y{place}",), {}, {
            "weight": Parameter(name, array.shape, "float32", lambda array=array: array)  # type: ignore[misc]
        })
        for place, (name, array) in enumerate(weights)
    ]  # fmt: skip
    tensors = {name: Tensor(name, (2, 2), "float32") for name in ("x", "y0", "y1", "y2")}
    graph = LayerGraph(("x",), ("y0", "y1", "y2"), tensors, tuple(nodes))
    assert graph.repeated == {"y0": ("y0", "y2"), "y2": ("y0", "y2")}


@pytest.mark.parametrize("size", [1e-12, 1e-3, 1.0, 1e9])
def test_numbers_are_of_another_layer_at_any_size(size: float) -> None:
    """Half precision's digits tell, and not its range."""
    drawn = np.random.default_rng(0).standard_normal((3, 50)) * size
    parameters = (
        {"weight": Parameter("w", item.shape, "float32", lambda item=item: item.astype(np.float32))}
        for item in drawn[:2]
    )
    nodes = [
        Node(str(index), str(index), "Add", "Add", ("x",), ("y",), {}, held) for index, held in enumerate(parameters)
    ]
    graph = LayerGraph(("x",), ("y",), {}, tuple(nodes))
    assert [graph.holder(item) for item in drawn] == ["0", "1", None]

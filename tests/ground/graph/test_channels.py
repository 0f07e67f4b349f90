"""Which axis has the channels: what the operators around a tensor say."""

from __future__ import annotations

import pytest

from conrepair.ground.graph.channels import channel_axis
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Tensor


def graph_of(*operators: tuple[str, bool]) -> LayerGraph:
    """Operators in a row, from "t0" on, each with whether its channels are the last axis."""
    nodes = tuple(
        Node(f"n{place}", f"n{place}", op, op, (f"t{place}",), (f"t{place + 1}",), channels_last=last)
        for place, (op, last) in enumerate(operators)
    )
    names = [f"t{place}" for place in range(len(nodes) + 1)]
    tensors = {name: Tensor(name, (1, 2, 3, 4), "float32") for name in names}
    return LayerGraph(("t0",), (names[-1],), tensors, nodes)


@pytest.mark.parametrize("last", [False, True])
def test_an_operator_with_channels_tells_of_what_it_reads_and_gives_and_of_what_follows(last: bool) -> None:
    graph = graph_of(("Conv", last), ("Add", False), ("Relu", False))
    assert {channel_axis(graph, name, 4) for name in graph.tensors} == {3 if last else 1}


def test_the_nearest_one_tells() -> None:
    """A file may turn its layout and turn it back."""
    graph = graph_of(("Conv", True), ("Transpose", False), ("Conv", False), ("Relu", False))
    assert [channel_axis(graph, f"t{place}", 4) for place in range(5)] == [3, 3, 1, 1, 1]


def test_heads_of_an_attention_are_behind_the_samples_wherever_pictures_have_their_channels() -> None:
    graph = graph_of(("Conv", True), ("Reshape", False), ("MatMul", False), ("Softmax", False))
    assert channel_axis(graph, "t4", 4) == 1

"""What only computes sizes is left out of a graph, and nothing else is."""

from __future__ import annotations

from conrepair.ground.graph.layer_graph import LayerGraph, Node, Tensor, without_sizes


def graph(nodes: list[tuple[str, tuple[str, ...], str, str]], outputs: tuple[str, ...]) -> LayerGraph:
    """Nodes as (operator, inputs, output, type of the output), behind an input "x"."""
    tensors = {"x": Tensor("x", (2, 6), "float32")}
    tensors |= {output: Tensor(output, None, dtype) for _, _, output, dtype in nodes}
    made = tuple(Node(output, output, op, op, inputs, (output,)) for op, inputs, output, _ in nodes)
    return LayerGraph(("x",), outputs, tensors, made)


def test_arithmetic_of_sizes_is_left_out() -> None:
    given = graph(
        [
            ("Shape", ("x",), "shape", "int64"),
            ("Gather", ("shape",), "batch", "int64"),
            ("Concat", ("batch",), "wanted", "int64"),
            ("Reshape", ("x", "wanted"), "y", "float32"),
        ],
        ("y",),
    )
    left = without_sizes(given)
    assert [node.op for node in left.nodes] == ["Reshape"]
    assert left.nodes[0].inputs == ("x", "")
    assert set(left.tensors) == {"x", "y"}
    assert left.feeding({"x"}) == {"y": ("x",)}


def test_numbers_that_come_from_values_stay() -> None:
    given = graph([("ArgMax", ("x",), "best", "int64"), ("Gather", ("x", "best"), "y", "float32")], ("y",))
    assert without_sizes(given) is given


def test_real_numbers_made_of_sizes_stay_and_read_nothing() -> None:
    given = graph(
        [
            ("Shape", ("x",), "shape", "int64"),
            ("Cast", ("shape",), "real", "float32"),
            ("Div", ("x", "real"), "y", "float32"),
        ],
        ("y",),
    )
    left = without_sizes(given)
    assert [node.op for node in left.nodes] == ["Cast", "Div"]
    assert left.nodes[0].inputs == ("",)


def test_sizes_that_are_a_result_stay() -> None:
    given = graph([("Shape", ("x",), "shape", "int64")], ("shape",))
    assert without_sizes(given) is given

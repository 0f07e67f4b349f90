"""What reports show of a graph."""

from __future__ import annotations

from conrepair.ground.graph.layer_graph import LayerGraph, Node, Tensor
from conrepair.ground.graph.record import graph_record


def test_tables_are_told_by_their_spread() -> None:
    values, texts = tuple(float(place) for place in range(100)), ("LEAF",) * 100
    node = Node("trees", "trees", "Trees", "Trees", ("x",), ("y",), {"values": values, "modes": texts, "few": (1, 2)})
    tensors = {name: Tensor(name, (2, 4), "float32") for name in "xy"}
    [found] = graph_record(LayerGraph(("x",), ("y",), tensors, (node,))).nodes
    assert found.attributes == {"few": (1, 2)}
    assert (found.parameters["values"].shape, found.parameters["values"].dtype) == ((100,), "float64")
    assert found.parameters["values"].spread is not None
    assert found.parameters["values"].spread.maximum == 99
    assert (found.parameters["modes"].dtype, found.parameters["modes"].spread) == ("object", None)

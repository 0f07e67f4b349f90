"""Layers that other libraries write in pieces, with what a fault puts between the pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_networks
import pytest

from conrepair.diagnosis.localization.faces.region import side
from conrepair.diagnosis.localization.faces.steps.readings import as_written, fused, rearranged, with_functions
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Parameter, Tensor

HEAD = "small (float[2, 3, 8, 8] x) => (float[2, 4, 8, 8] y)"
WEIGHTS = {
    "w": onnx_networks.drawn(4, 3, 3, 3, seed=1), "s": onnx_networks.drawn(4, seed=2),
    "h": onnx_networks.drawn(4, seed=3), "m": onnx_networks.drawn(4, seed=4),
    "v": np.abs(onnx_networks.drawn(4, seed=5)) + 1,
    "b": onnx_networks.drawn(4, 1, 1, seed=6), "low": np.float32(-1), "high": np.float32(1),
}  # fmt: skip
CONVOLUTION = "c = Conv <pads = [1, 1, 1, 1]> (x, w)"


def graph_of(lines: list[str], folder: Path) -> LayerGraph:
    text = "\n".join(lines)
    used = {name: array for name, array in WEIGHTS.items() if f", {name}" in text}
    path = onnx_networks.written(folder / "piece.onnx", f"{HEAD} {{ {text} }}", used)
    model = onnx_networks.model_of("onnx", path)
    return onnx_networks.open_network(model, onnx_networks.specs(model, {"x": onnx_networks.drawn(2, 3, 8, 8)})).graph


def ops(graph: LayerGraph) -> list[list[str]]:
    whole = side(graph, {"x"}, "y")
    return [[step.op for step in read(whole)] for read in (as_written, with_functions, fused, rearranged)]


@pytest.mark.parametrize("rest", ["y = BatchNormalization (c, s, h, m, v)", "y = Add (c, b)", "y = Mul (c, b)"])
def test_what_completes_a_layer_is_a_part_of_it(rest: str, tmp_path: Path) -> None:
    written, _, together, moved = ops(graph_of([CONVOLUTION, rest], tmp_path))
    assert len(written) == 2
    assert together == moved == ["Conv"]


@pytest.mark.parametrize("between", ["Clip (c, low, high)", "Relu (c)"])
def test_what_lies_between_is_read_behind(between: str, tmp_path: Path) -> None:
    lines = [CONVOLUTION, f"d = {between}", "y = BatchNormalization (d, s, h, m, v)"]
    graph = graph_of(lines, tmp_path)
    _, _, together, moved = ops(graph)
    assert len(together) == 3
    assert moved[0] == "Conv"
    assert len(moved) == 2
    first, second = rearranged(side(graph, {"x"}, "y"))
    assert {node.op for node in first.nodes} == {"Conv", "BatchNormalization"}
    assert second.inputs == first.outputs
    assert second.outputs == ("y",)


def test_what_is_read_elsewhere_too_stays(tmp_path: Path) -> None:
    lines = [CONVOLUTION, "d = Relu (c)", "e = BatchNormalization (d, s, h, m, v)", "y = Add (d, e)"]
    assert ops(graph_of(lines, tmp_path))[3] == ["Conv", "Clip", "BatchNormalization", "Add"]


def blocks(crops: tuple[int, ...] = (0, 0, 0, 0)) -> LayerGraph:
    """A dilated convolution as TensorFlow writes it."""
    shapes = {"x": (1, 8, 8, 2), "a": (4, 6, 6, 2), "c": (4, 4, 4, 3), "y": (1, 8, 8, 3)}
    weight = Parameter("w", (3, 2, 3, 3), "float32", lambda: np.ones((3, 2, 3, 3), np.float32))
    plain = {"kernel_shape": (3, 3), "strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1), "group": 1}
    nodes = (
        Node("a", "a", "SpaceToBatch", "", ("x",), ("a",), {"block": (2, 2), "pads": (2, 2, 2, 2)}),
        Node("c", "c", "Conv", "", ("a",), ("c",), plain, {"weight": weight}, channels_last=True),
        Node("y", "y", "BatchToSpace", "", ("c",), ("y",), {"block": (2, 2), "crops": crops}),
    )
    tensors = {name: Tensor(name, shape, "float32") for name, shape in shapes.items()}
    return LayerGraph(("x",), ("y",), tensors, nodes)


@pytest.mark.parametrize(("crops", "pads"), [((0, 0, 0, 0), (2, 2, 2, 2)), ((0, 0, 1, 1), (2, 2, 1, 1))])
def test_a_dilated_convolution_in_blocks_is_one(crops: tuple[int, ...], pads: tuple[int, ...]) -> None:
    [step] = with_functions(side(blocks(crops), {"x"}, "y"))
    assert step.op == "Conv"
    assert step.layers[0] == "c"
    assert step.channels_last
    assert (step.attributes["dilations"], step.attributes["pads"]) == ((2, 2), pads)

"""Elementwise pieces of ONNX graphs, in ONNX's own text form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_networks

from conrepair.ground.graph.layer_graph import LayerGraph

__all__ = ["CONSTANTS", "graph_of"]

CONSTANTS = {
    "zero": 0.0, "one": 1.0, "half": 0.5, "two": 2.0, "three": 3.0, "six": 6.0, "sixth": 1 / 6, "fifth": 0.2,
    "root2": np.sqrt(2), "root_half": np.sqrt(0.5), "cubic": 0.044715, "slope": np.sqrt(2 / np.pi),
    "selu_alpha": 1.6732632423543772, "selu_gamma": 1.0507009873554805,
}  # fmt: skip


def graph_of(lines: str, folder: Path, opset: int = 20) -> LayerGraph:
    """A graph from `x` to `y`; `CONSTANTS` can be named in it."""
    text = f"small (float[2, 3, 4] x) => (float[2, 3, 4] y) {{ {lines} }}"
    used = {name: np.float32(value) for name, value in CONSTANTS.items() if name in lines}
    path = onnx_networks.written(folder / "piece.onnx", text, used, opset)
    model = onnx_networks.model_of("onnx", path)
    feeds = {"x": onnx_networks.drawn(2, 3, 4)}
    return onnx_networks.open_network(model, onnx_networks.specs(model, feeds)).graph

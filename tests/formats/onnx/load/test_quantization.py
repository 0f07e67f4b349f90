"""Integer inputs and outputs of ONNX graphs that stand for real numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from conrepair.formats.models.model import Model
from conrepair.formats.onnx.load.framework import FRAMEWORK
from conrepair.ground.data.tensor_spec import Quantization


def save(path: Path, scale: np.ndarray, *, moved: bool = False) -> Model:
    first, last = ("moved", "left") if moved else ("x", "y")
    nodes = [
        helper.make_node("DequantizeLinear", [first, "sx", "zx"], ["r"], axis=1),
        helper.make_node("Relu", ["r"], ["a"]),
        helper.make_node("QuantizeLinear", ["a", "sy", "zy"], [last]),
    ]
    if moved:
        nodes = [
            helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0]),
            helper.make_node("Transpose", ["turned"], ["moved"], perm=[1, 0]),
            *nodes,
            helper.make_node("Unsqueeze", ["left", "axis"], ["wide"]),
            helper.make_node("Squeeze", ["wide", "axis"], ["y"]),
        ]
    tensors = {
        "sx": scale,
        "zx": np.full(scale.shape, 127, np.uint8),
        "sy": np.array(0.5, np.float32),
        "zy": np.array(-128, np.int8),
        "axis": np.array([0], np.int64),
    }
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, ["batch", 3])],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return Model("onnx", str(path), "")


@pytest.mark.parametrize("moved", [False, True])
def test_real_numbers_go_in_and_come_out(tmp_path: Path, moved: bool) -> None:
    runnable = FRAMEWORK.load(save(tmp_path / "q.onnx", np.array(0.25, np.float32), moved=moved))
    assert runnable.inputs[0].quantization == Quantization(0.25, 127)
    assert runnable.outputs[0].quantization == Quantization(0.5, -128)
    outputs = runnable.run({"x": np.array([[1.0, -2.0, 3.6]], np.float32)})
    np.testing.assert_array_equal(outputs["y"], np.array([[1.0, 0.0, 3.5]], np.float32))


def test_quantization_by_channel_is_not_the_tensors(tmp_path: Path) -> None:
    runnable = FRAMEWORK.load(save(tmp_path / "q.onnx", np.array([0.25, 0.5, 1], np.float32)))
    assert runnable.inputs[0].quantization is None

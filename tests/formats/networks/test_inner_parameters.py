"""Constants of a loop's body are parameters of the loop, whichever graph the file has them in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_networks import drawn
from recurrent_networks import keras_network, tflite_file
from small_models import model_of

from conrepair.formats.onnx.read.network import open_network as open_onnx
from conrepair.formats.tflite.read.network import open_network as open_tflite
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import Node, Parameter

_HIDDEN = 24
_STEPS, _WIDTH = 4, 5


@pytest.mark.parametrize("eight_bits", [False, True])
def test_a_tflite_loop_has_the_weights_of_its_body(eight_bits: bool, tmp_path: Path) -> None:
    network = keras_network("LSTM", width=_HIDDEN, hidden=_HIDDEN)
    path = tflite_file(network, tmp_path / "target.tflite", eight_bits=eight_bits)
    opened = open_tflite(model_of("tflite", path), [TensorSpec("x", (1, _STEPS, _HIDDEN), "float32")])
    (loop,) = (node for node in opened.graph.nodes if node.op == "WHILE")
    kernel, recurrent, bias = network.get_layer("layer").get_weights()
    for wanted in (kernel.T, recurrent.T):
        held = _nearest(wanted, loop)
        assert held.bits == (8 if eight_bits else None)
        assert len(held.scales) == (4 * _HIDDEN if eight_bits else 0)
        np.testing.assert_allclose(held.numpy(), wanted, atol=np.abs(wanted).max() / 250 if eight_bits else 0)
    np.testing.assert_array_equal(_nearest(bias, loop).numpy(), bias)
    assert any(role.startswith("weight of FULLY_CONNECTED") and role.endswith("the body") for role in loop.parameters)


def test_what_a_loop_hands_on_is_no_result_of_it(tmp_path: Path) -> None:
    path = tflite_file(keras_network("LSTM"), tmp_path / "target.tflite")
    opened = open_tflite(model_of("tflite", path), [TensorSpec("x", (1, _STEPS, _WIDTH), "float32")])
    (loop,) = (node for node in opened.graph.nodes if node.op == "WHILE")
    read = opened.graph.tensors[loop.inputs[-1]]
    told = [opened.graph.tensors[name] for name in loop.outputs]
    assert [tensor.observable for tensor in told if tensor.shape == read.shape] == [False]
    assert sum(tensor.observable for tensor in told) == len(told) - 1
    assert not any(name.endswith("index") for name in loop.attributes)


def _nearest(wanted: np.ndarray, loop: Node) -> Parameter:
    fitting = [item for item in loop.parameters.values() if item.shape == wanted.shape]
    return min(fitting, key=lambda item: float(np.abs(item.numpy() - wanted).max()))


def _loop(folder: Path, stored: bool) -> Path:
    """A recurrent network as a Loop; its body has a weight of its own, and reads one of the graph around it."""
    recurrent = [numpy_helper.from_array(drawn(6, 6, seed=1), "recurrent")]
    read = "recurrent"
    dequantizing = []
    if stored:
        recurrent = [
            numpy_helper.from_array(np.arange(36, dtype=np.int8).reshape(6, 6) - 18, "recurrent"),
            numpy_helper.from_array(np.float32(0.01), "step"),
        ]
        dequantizing, read = [helper.make_node("DequantizeLinear", ["recurrent", "step"], ["real"])], "real"
    body = helper.make_graph(
        [
            *dequantizing,
            helper.make_node("Gather", ["x", "turn"], ["now"], axis=0),
            helper.make_node("MatMul", ["now", "kernel"], ["given"]),
            helper.make_node("MatMul", ["state", read], ["back"]),
            helper.make_node("Add", ["given", "back"], ["both"]),
            helper.make_node("Tanh", ["both"], ["next"]),
            helper.make_node("Identity", ["going"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, [1, 6]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [1, 6]),
        ],
        recurrent,
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["count", "", "start"], ["y"], "loop", body=body)],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [_STEPS, 1, _WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6])],
        [
            numpy_helper.from_array(drawn(_WIDTH, 6), "kernel"),
            numpy_helper.from_array(np.array(_STEPS), "count"),
            numpy_helper.from_array(np.zeros((1, 6), np.float32), "start"),
        ],
    )
    path = folder / "loop.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def _onnx_parameters(folder: Path, *, stored: bool) -> dict[str, Parameter]:
    model = model_of("onnx", _loop(folder, stored))
    network = open_onnx(model, [TensorSpec("x", (_STEPS, 1, _WIDTH), "float32")])
    (loop,) = network.graph.nodes
    assert [name for name in loop.inputs if name] == ["x"]
    return dict(loop.parameters)


def test_an_onnx_loop_has_the_weights_of_its_body(tmp_path: Path) -> None:
    found = _onnx_parameters(tmp_path, stored=False)
    np.testing.assert_array_equal(found["weight of MatMul 1 in the body"].numpy(), drawn(_WIDTH, 6))
    np.testing.assert_array_equal(found["weight of MatMul 2 in the body"].numpy(), drawn(6, 6, seed=1))


def test_weights_in_few_bits_of_an_onnx_loop_are_the_numbers_that_they_stand_for(tmp_path: Path) -> None:
    held = _onnx_parameters(tmp_path, stored=True)["x of DequantizeLinear 0 in the body"]
    assert held.bits == 8
    assert held.scales == pytest.approx((0.01,))
    np.testing.assert_allclose(held.numpy().reshape(-1), (np.arange(36) - 18) * 0.01, rtol=1e-6)

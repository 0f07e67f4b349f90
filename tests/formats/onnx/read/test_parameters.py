"""The graph's attributes and parameters say what a node computes: others compute it from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx_networks import Array, captured, drawn, opened, written
from small_models import images, model_of

from conrepair.formats.onnx.read.network import OnnxNetwork, open_network
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import Node

_CLOSE: Mapping[str, Any] = {"rtol": 1e-4, "atol": 1e-5}


def test_convolutions(tmp_path: Path) -> None:
    for name in ("convnet", "residual", "quantized"):
        network, feeds, _ = opened(name, tmp_path)
        values = {**feeds, **captured(network, feeds)}
        nodes = [node for node in network.graph.nodes if node.op == "Conv"]
        assert nodes
        for node in nodes:
            np.testing.assert_allclose(_convolved(node, values), values[node.outputs[0]], **_CLOSE)


def _convolved(node: Node, values: Mapping[str, Array]) -> Array:
    top, left, bottom, right = node.attributes["pads"]  # type: ignore[misc]
    padded = torch.nn.functional.pad(torch.tensor(values[node.inputs[0]]), (left, right, top, bottom))
    bias = node.parameters.get("bias")
    return torch.nn.functional.conv2d(
        padded,
        torch.tensor(node.parameters["weight"].numpy()),
        None if bias is None else torch.tensor(bias.numpy()),
        stride=node.attributes["strides"],
        dilation=node.attributes["dilations"],
        groups=node.attributes["group"],
    ).numpy()


@pytest.mark.parametrize(("name", "order"), [("lstm", [0, 2, 3, 1]), ("gru", [1, 0, 2])])
def test_recurrent_layers(name: str, order: list[int], tmp_path: Path) -> None:
    network, feeds, _ = opened(name, tmp_path)
    values = captured(network, feeds)
    node = next(node for node in network.graph.nodes if "W" in node.parameters)
    size = int(node.attributes["hidden_size"])  # type: ignore[arg-type]
    both = node.attributes["direction"] == "bidirectional"
    w, r, b = (node.parameters[role].numpy() for role in "WRB")
    layer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[name](w.shape[-1], size, bidirectional=both)

    def torch_order(array: Array) -> torch.Tensor:
        return torch.tensor(np.concatenate([array[gate * size : (gate + 1) * size] for gate in order]))

    for direction, suffix in enumerate(["", "_reverse"][: w.shape[0]]):
        ends = (b[direction][: len(order) * size], b[direction][len(order) * size :])
        labels = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        for label, array in zip(labels, (w[direction], r[direction], *ends), strict=True):
            getattr(layer, f"{label}_l0{suffix}").data = torch_order(array)
    assert not node.attributes["batch_first"]
    result, _ = layer(torch.tensor(values[node.inputs[0]]))
    got = values[node.outputs[0]].transpose(0, 2, 1, 3).reshape(result.shape)
    np.testing.assert_allclose(result.detach().numpy(), got, **_CLOSE)


def test_transposed_convolution_resolves_same(tmp_path: Path) -> None:
    text = """small (float[2, 3, 12, 10] x) => (float[2, 4, 24, 20] y) {
        y = ConvTranspose <auto_pad = "SAME_LOWER", strides = [2, 2]> (x, w)
    }"""
    network = _opened(tmp_path, text, {"w": drawn(3, 4, 3, 3)}, (2, 3, 12, 10))
    (node,) = network.graph.nodes
    x = images()
    top, left, bottom, right = node.attributes["pads"]  # type: ignore[misc]
    whole = torch.nn.functional.conv_transpose2d(
        torch.tensor(x), torch.tensor(node.parameters["weight"].numpy()), stride=node.attributes["strides"]
    ).numpy()
    cropped = whole[:, :, top : whole.shape[2] - bottom, left : whole.shape[3] - right]
    np.testing.assert_allclose(cropped, captured(network, {"x": x})["y"], **_CLOSE)


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("addend", [(), (1,), (4,), (1, 4), (2, 1), (2, 4)])
def test_gemm_with_constants(addend: tuple[int, ...], flipped: bool, tmp_path: Path) -> None:
    text = f"""small (float[2, 3] x) => (float[2, 4] y) {{
        y = Gemm <alpha = 0.25, beta = 3.0, transB = {int(flipped)}> (x, b, c)
    }}"""
    b, c = drawn(3, 4, seed=1), drawn(*addend, seed=2)
    network = _opened(tmp_path, text, {"b": b.T.copy() if flipped else b, "c": c}, (2, 3))
    x = drawn(2, 3, seed=3)
    first, *rest = network.graph.nodes
    result = x @ first.parameters["weight"].numpy()
    if addend in {(2, 1), (2, 4)}:
        assert [node.op for node in rest] == ["Add"]
        assert not network.graph.tensors[first.outputs[0]].observable
        result = result + rest[0].parameters["operand"].numpy()
    else:
        assert not rest
        result = result + first.parameters["bias"].numpy()
    np.testing.assert_allclose(result, captured(network, {"x": x})["y"], **_CLOSE)


def test_gemm_of_inputs(tmp_path: Path) -> None:
    text = """small (float[3, 2] x) => (float[2, 2] y) {
        c = Exp (x)
        s = Slice (c, starts, ends)
        y = Gemm <alpha = 0.25, beta = 3.0, transA = 1> (x, x, s)
    }"""
    network = _opened(tmp_path, text, {"starts": np.array([-3]), "ends": np.array([2])}, (3, 2))
    *_, piece, product, alpha, beta, total = network.graph.nodes
    assert [node.op for node in (product, alpha, beta, total)] == ["MatMul", "Mul", "Mul", "Add"]
    assert (product.attributes["transpose_a"], product.attributes["transpose_b"]) == (True, False)
    assert {node.layer for node in (product, alpha, beta, total)} == {"y"}
    assert (piece.attributes["starts"], piece.attributes["ends"], piece.attributes["axes"]) == ((0,), (2,), (0,))
    assert (alpha.parameters["operand"].numpy(), beta.parameters["operand"].numpy()) == (0.25, 3.0)
    assert total.inputs == (alpha.outputs[0], beta.outputs[0])


def test_softmax_of_old_opsets_sees_a_matrix(tmp_path: Path) -> None:
    text = "small (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }"
    network = _opened(tmp_path, text, {}, (2, 3, 4), opset=11)
    flat, softmax, back = network.graph.nodes
    assert [node.op for node in (flat, softmax, back)] == ["Reshape", "Softmax", "Reshape"]
    assert (flat.attributes["shape"], back.attributes["shape"]) == ((2, 12), (2, 3, 4))
    x = drawn(2, 3, 4)
    result = torch.softmax(torch.tensor(x).reshape(2, 12), softmax.attributes["axis"]).reshape(2, 3, 4)  # type: ignore[arg-type]
    np.testing.assert_allclose(result.numpy(), captured(network, {"x": x})["y"], **_CLOSE)


def test_quantized_weights_and_tensors(tmp_path: Path) -> None:
    network, feeds, model = opened("quantized", tmp_path)
    node = next(node for node in network.graph.nodes if node.op == "Conv")
    weight = node.parameters["weight"]
    stored = np.random.default_rng(1).integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    assert (weight.bits, weight.dtype, len(weight.scales)) == (8, "int8", 4)
    np.testing.assert_allclose(weight.numpy(), stored * np.array(weight.scales)[:, None, None, None], rtol=1e-6)
    values = captured(network, feeds)
    for name, dequantized in (("qx", "x"), ("qp", "y")):
        assert network.graph.tensors[name].is_real
        assert network.graph.tensors[name].dtype == "uint8"
        np.testing.assert_array_equal(values[name], values[dequantized])
    assert network.graph.tensors["qr"].quantization == network.graph.tensors["qp"].quantization
    assert model.framework == "onnx"


def test_constants_have_their_side_and_place(tmp_path: Path) -> None:
    network, _, _ = opened("split", tmp_path)
    by_output = {node.outputs[0]: node for node in network.graph.nodes}
    assert by_output["d"].attributes["constant_first"] is True
    np.testing.assert_array_equal(by_output["e"].parameters["operand"].numpy(), np.maximum(0.1, drawn(2, seed=1)))
    assert by_output["a"].attributes == {"axis": 1, "sizes": (2, 2)}


def test_sizes_that_are_computed_are_known(tmp_path: Path) -> None:
    network, _, _ = opened("encoder", tmp_path)
    shapes = {node.outputs[0]: node.attributes["shape"] for node in network.graph.nodes if node.op == "Reshape"}
    assert shapes == {**dict.fromkeys(("qr", "kr", "vr"), (2, 3, 2, 16)), "joined": (2, 3, 32)}
    assert all(tensor.shape is not None for tensor in network.graph.tensors.values())


def test_graphs_in_attributes_read_what_they_capture(tmp_path: Path) -> None:
    network, _, _ = opened("branching", tmp_path)
    node = next(node for node in network.graph.nodes if node.op == "If")
    assert node.inputs == ("positive", "h")


def test_nodes_of_a_function_belong_to_its_call(tmp_path: Path) -> None:
    network, _, _ = opened("function", tmp_path)
    layers = {node.outputs[0]: node.layer for node in network.graph.nodes}
    assert layers == {"h": "h", "product": "call", "gate": "call", "y": "call"}


def _opened(
    folder: Path, text: str, weights: Mapping[str, Array], shape: tuple[int, ...], **options: Any
) -> OnnxNetwork:
    path = written(folder / "small.onnx", text, weights, **options)
    return open_network(model_of("onnx", path), [TensorSpec("x", shape, "float32")])

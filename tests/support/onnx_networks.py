"""ONNX networks that are cut in tests: one per kind of graph. Written in ONNX's own text form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper
from small_models import FEATURES, images, model_of, onnx_convnet, onnx_pair, onnx_text, tokens, vectors

from conrepair.formats.models.model import Model
from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.formats.onnx.read.network import OnnxNetwork, open_network
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.onnx_session import open_session

Array = npt.NDArray[Any]

_WIDTH, _HIDDEN, _HEADS = 32, 5, 2


def written(path: Path, text: str, weights: Mapping[str, Array], opset: int = 17, ir_version: int = 9) -> Path:
    """Save a graph whose initializers are given as arrays."""
    header = f'<ir_version: {ir_version}, opset_import: ["" : {opset}, "com.microsoft" : 1]>'
    proto = onnx.parser.parse_model(header + text)
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(item), name) for name, item in weights.items())
    onnx.save(proto, path)
    return path


def drawn(*shape: int, seed: int = 0, scale: float = 0.5) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


def residual(path: Path) -> Path:
    """Two branches that are added, padded by auto_pad, behind a weight that is computed."""
    text = """small (float[batch, 3, 12, 10] image) => (float[batch, 4] y) {
        flipped = Transpose <perm = [1, 0, 2, 3]> (stored)
        [entry] a = Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (image, flipped, bias)
        b = Relu (a)
        c = Conv <pads = [1, 1, 1, 1]> (b, inner)
        d = Add (b, c)
        e = GlobalAveragePool (d)
        f = Squeeze (e, axes)
        g = Gemm <alpha = 0.5, beta = 2.0, transB = 1> (f, dense, shift)
        y = Softmax <axis = 1> (g)
    }"""
    weights = {
        "stored": drawn(3, 5, 3, 3, seed=1), "bias": drawn(5, seed=2), "inner": drawn(5, 5, 3, 3, seed=3),
        "axes": np.array([2, 3]), "dense": drawn(4, 5, seed=4), "shift": drawn(4, seed=5),
    }  # fmt: skip
    return written(path, text, weights)


def encoder(path: Path) -> Path:
    """Attention as exporters write it, with shapes that are computed from the input."""
    text = """small (float[batch, steps, 32] x) => (float[batch, steps, 32] y) {
        normal = LayerNormalization (x, scale, shift)
        q = MatMul (normal, wq)
        k = MatMul (normal, wk)
        v = MatMul (normal, wv)
        shape = Shape (x)
        both = Gather (shape, leading)
        target = Concat <axis = 0> (both, heads)
        qr = Reshape (q, target)
        kr = Reshape (k, target)
        vr = Reshape (v, target)
        qt = Transpose <perm = [0, 2, 1, 3]> (qr)
        kt = Transpose <perm = [0, 2, 3, 1]> (kr)
        vt = Transpose <perm = [0, 2, 1, 3]> (vr)
        products = MatMul (qt, kt)
        scaled = Div (products, root)
        weights = Softmax <axis = -1> (scaled)
        mixed = MatMul (weights, vt)
        back = Transpose <perm = [0, 2, 1, 3]> (mixed)
        joined = Reshape (back, flat)
        projected = MatMul (joined, wo)
        sum = Add (projected, x)
        erf = Erf (sum)
        y = Mul (erf, gain)
    }"""
    weights = {f"w{name}": drawn(_WIDTH, _WIDTH, seed=index, scale=0.2) for index, name in enumerate("qkvo")}
    weights |= {"scale": drawn(_WIDTH, seed=5) + 1, "shift": drawn(_WIDTH, seed=6), "gain": drawn(_WIDTH, seed=7)}
    weights |= {"root": np.float32(4), "leading": np.array([0, 1]), "flat": np.array([0, 0, _WIDTH])}
    return written(path, text, {**weights, "heads": np.array([_HEADS, _WIDTH // _HEADS])})


def recurrent(path: Path, operator: str = "LSTM") -> Path:
    """A recurrent layer in both directions whose last state and sequence are both used."""
    gates = {"LSTM": 4, "GRU": 3}[operator]
    extra = ", linear_before_reset = 1" if operator == "GRU" else ""
    text = f"""small (float[batch, steps, {FEATURES}] x) => (float[steps, batch, 10] y, float[2, batch, 5] state) {{
        turned = Transpose <perm = [1, 0, 2]> (x)
        [layer] all, state = {operator} <hidden_size = 5, direction = "bidirectional"{extra}> (turned, W, R, B)
        order = Transpose <perm = [0, 2, 1, 3]> (all)
        y = Reshape (order, joined)
    }}"""
    weights = {
        "W": drawn(2, gates * _HIDDEN, FEATURES, seed=1), "R": drawn(2, gates * _HIDDEN, _HIDDEN, seed=2),
        "B": drawn(2, 2 * gates * _HIDDEN, seed=3), "joined": np.array([0, 0, -1]),
    }  # fmt: skip
    return written(path, text, weights)


def branching(path: Path) -> Path:
    """A graph in an attribute, which reads a tensor and a weight from outside."""
    text = """small (float[batch, 4] x) => (float[batch, 4] y) {
        h = Tanh (x)
        mean = ReduceMean <keepdims = 0> (h)
        positive = Greater (mean, zero)
        chosen = If (positive) <
            then_branch = one () => (float[batch, 4] p) { p = MatMul (h, weight) },
            else_branch = two () => (float[batch, 4] n) { m = Neg (h)
                n = Exp (m) }>
        y = Add (chosen, h)
    }"""
    return written(path, text, {"weight": drawn(4, 4, seed=1), "zero": np.float32(0)})


def split(path: Path) -> Path:
    """A node of several outputs, one of which is read twice."""
    text = """small (float[batch, 4] x) => (float[batch, 6] y) {
        h = Sigmoid (x)
        a, b = Split <axis = -1> (h, sizes)
        c = Mul (a, b)
        d = Sub (one, a)
        e = Max (c, low, lower)
        y = Concat <axis = 1> (c, d, e)
    }"""
    constants = {"sizes": np.array([2, 2]), "one": np.float32(1), "low": np.float32(0.1), "lower": drawn(2, seed=1)}
    return written(path, text, constants)


def quantized(path: Path) -> Path:
    """Quantization as nodes; weights per channel, integers through a pooling."""
    text = """small (float[batch, 3, 12, 10] image) => (float[batch, 4, 5, 4] y) {
        qx = QuantizeLinear (image, sx, zx)
        x = DequantizeLinear (qx, sx, zx)
        w = DequantizeLinear <axis = 0> (qw, sw, zw)
        h = Conv (x, w)
        r = Relu (h)
        qr = QuantizeLinear (r, sr, zr)
        qp = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (qr)
        y = DequantizeLinear (qp, sr, zr)
    }"""
    weights = {
        "qw": np.random.default_rng(1).integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
        "sw": np.abs(drawn(4, seed=2, scale=0.01)) + 0.001, "zw": np.zeros(4, np.int8),
        "sx": np.float32(0.03), "zx": np.uint8(121), "sr": np.float32(0.02), "zr": np.uint8(3),
    }  # fmt: skip
    return written(path, text, weights)


def with_function(path: Path) -> Path:
    """A call of a function that the model defines."""
    text = """small (float[batch, 4] x) => (float[batch, 4] y) {
        h = Sin (x)
        [call] y = own.Swiglu (h, weight)
    }
    <opset_import: ["" : 17], domain: "own"> Swiglu (a, b) => (c) {
        product = MatMul (a, b)
        gate = Sigmoid (product)
        c = Mul (product, gate)
    }"""
    header = '<ir_version: 9, opset_import: ["" : 17, "own" : 1]>'
    proto = onnx.parser.parse_model(header + text)
    proto.graph.initializer.append(numpy_helper.from_array(drawn(4, 4, seed=1), "weight"))
    onnx.save(proto, path)
    return path


NETWORKS: dict[str, tuple[Callable[[Path], Path], Callable[[], dict[str, Array]]]] = {
    "convnet": (onnx_convnet, lambda: {"image": images()}),
    "residual": (residual, lambda: {"image": images()}),
    "encoder": (encoder, lambda: {"x": drawn(2, 3, _WIDTH, scale=1)}),
    "lstm": (recurrent, lambda: {"x": drawn(2, 3, FEATURES, scale=1)}),
    "gru": (lambda path: recurrent(path, "GRU"), lambda: {"x": drawn(2, 3, FEATURES, scale=1)}),
    "pair": (onnx_pair, lambda: {"vector": vectors(), "image": images()}),
    "text": (onnx_text, lambda: {"text": tokens()}),
    "branching": (branching, lambda: {"x": vectors()}),
    "split": (split, lambda: {"x": vectors()}),
    "quantized": (quantized, lambda: {"image": images()}),
    "function": (with_function, lambda: {"x": vectors()}),
}
"""By name: what writes the file, and what draws its feeds."""


def opened(name: str, folder: Path) -> tuple[OnnxNetwork, dict[str, Array], Model]:
    """A network of the table, its feeds, and its file."""
    write, feed = NETWORKS[name]
    model = model_of("onnx", write(folder / f"{name}.onnx"))
    feeds = feed()
    return open_network(model, specs(model, feeds)), feeds, model


def specs(model: Model, feeds: Mapping[str, Array]) -> list[TensorSpec]:
    """A model's inputs with the sizes of some arrays."""
    return [replace(spec, shape=feeds[spec.name].shape) for spec in OnnxRunnable(model).inputs]


def observable(network: OnnxNetwork, *, real: bool = False) -> list[str]:
    """What can be captured: everything but the inputs."""
    tensors = network.graph.tensors.values()
    return [
        item.name
        for item in tensors
        if item.observable and item.name not in network.graph.inputs and (item.is_real or not real)
    ]


def captured(network: OnnxNetwork, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """All that can be captured, from one segment."""
    return network.segment(network.graph.inputs, observable(network)).run(feeds)


def all_values(path: str, names: list[str], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Intermediate values by ONNX Runtime alone: the file with more outputs."""
    proto = onnx.load(path)
    there = {value.name for value in proto.graph.output}
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in there)
    session = open_session(proto.SerializeToString(), threads=1)
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))

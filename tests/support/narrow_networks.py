"""ONNX networks of types that numpy has no names for: bfloat16, float8, four bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

_INPUT, _HIDDEN, _OUTPUT = 16, 160, 8


def _saved(
    path: Path,
    nodes: list[onnx.NodeProto],
    ends: tuple[onnx.ValueInfoProto, onnx.ValueInfoProto],
    weights: list[onnx.TensorProto],
    opset: int = 21,
) -> Path:
    graph = helper.make_graph(nodes, "narrow", [ends[0]], [ends[1]], weights)
    imports = [helper.make_opsetid("", opset)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10 if opset < 23 else 11), path)
    return path


def _drawn(*shape: int, seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=shape) * 0.5).astype(np.float32)


def ends_in(path: Path, kind: int, *, scale: float = 1.0, given: int = TensorProto.FLOAT, opset: int = 21) -> Path:
    """A layer whose result, and input, are of some type."""
    weight = onnx.numpy_helper.from_array(_drawn(_INPUT, _OUTPUT, seed=1) * np.float32(scale), "weight")
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["wide", "weight"], ["product"], "product"),
        helper.make_node("Cast", ["product"], ["y"], to=kind),
    ]
    ends = (
        helper.make_tensor_value_info("x", given, ["batch", _INPUT]),
        helper.make_tensor_value_info("y", kind, ["batch", _OUTPUT]),
    )
    return _saved(path, nodes, ends, [weight], opset)


def four_bits(path: Path, kind: int = TensorProto.INT4, *, scale: float = 0.1, turned: int = 0) -> Path:
    """Two layers whose weights are stored in four bits, with a scale for each block."""
    low, high = (-8, 8) if kind == TensorProto.INT4 else (0, 16)
    steps = np.random.default_rng(2).integers(low, high, (_INPUT, _HIDDEN))
    more = np.random.default_rng(3).integers(low, high, (_HIDDEN, _OUTPUT))
    steps = np.roll(steps, turned, axis=1)
    weights = [
        helper.make_tensor("steps", kind, steps.shape, steps.reshape(-1).tolist()),
        helper.make_tensor("more", kind, more.shape, more.reshape(-1).tolist()),
        onnx.numpy_helper.from_array(np.full((_INPUT // 8, _HIDDEN), scale, np.float32), "scales"),
        onnx.numpy_helper.from_array(np.float32(0.05), "scale"),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["steps", "scales"], ["weight"], "first", axis=0, block_size=8),
        helper.make_node("MatMul", ["x", "weight"], ["product"], "product"),
        helper.make_node("Relu", ["product"], ["active"], "active"),
        helper.make_node("DequantizeLinear", ["more", "scale"], ["other"], "second"),
        helper.make_node("MatMul", ["active", "other"], ["y"], "last"),
    ]
    ends = (
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", _INPUT]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", _OUTPUT]),
    )
    return _saved(path, nodes, ends, weights)


def computed_in(path: Path, kind: int = TensorProto.BFLOAT16, operator: str = "MatMul") -> Path:
    """A product that's computed in another type, as exporters of large language models leave it."""
    weight = helper.make_tensor(
        "weight", kind, (_INPUT, _OUTPUT), _drawn(_INPUT, _OUTPUT, seed=1).reshape(-1).tolist()
    )
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=kind),
        helper.make_node(operator, ["narrow", "weight"], ["product"], "product"),
        helper.make_node("Cast", ["product"], ["y"], to=TensorProto.FLOAT),
    ]
    ends = (
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", _INPUT]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", _OUTPUT]),
    )
    return _saved(path, nodes, ends, [weight])

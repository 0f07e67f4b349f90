"""An ONNX file, computed node by node in another arithmetic: what a device would answer, by code of our own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import torch
from onnx import NodeProto, helper, numpy_helper

from benchmarks.arithmetics.rounding import Arithmetic, on_grid

__all__ = ["one_by_one", "simulated"]

Array = npt.NDArray[Any]
Arrays = dict[str, Array]

_PRODUCTS = {"Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU"}
_RECURRENT = {"LSTM", "GRU"}
_WEIGHTS_AXIS = {"Conv": 0, "ConvTranspose": 1, "LSTM": 1, "GRU": 1}
_MOVES = {
    *("Reshape", "Transpose", "Slice", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Gather", "Split", "Expand"),
    *("Cast", "Shape", "MaxPool", "DepthToSpace", "Pad", "Dropout", "Tile"),
}
"""That only move numbers: their results are as they are."""

_WHOLE = {"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Neg", "Sum", "ReduceSum", "ReduceProd", "MatMul", "CumSum"}
"""That make large whole numbers."""


def simulated(model: onnx.ModelProto, feeds: Mapping[str, Array], arithmetic: Arithmetic) -> Arrays:
    """Compute all tensors.

    Args:
        model: Without inner graphs.
        feeds: Samples by input.
        arithmetic: What numbers are rounded to.

    Returns:
        By name, inputs and constants not among them.
    """
    held = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    held = {name: _constant(array, arithmetic) for name, array in held.items()}
    fixed = set(held)
    known = held | {name: _kept(array, arithmetic) for name, array in feeds.items()}
    made: Arrays = {}
    for node in model.graph.node:
        if node.op_type == "Constant":
            known[node.output[0]] = _constant(_run(node, {}, _opset(model))[0], arithmetic)
            fixed.add(node.output[0])
            continue
        found = _computed(node, known, _opset(model), arithmetic, fixed)
        known |= found
        made |= found
    return made


def _computed(
    node: NodeProto, known: Mapping[str, Array], opset: int, arithmetic: Arithmetic, fixed: set[str]
) -> Arrays:
    """Compute one node.

    Args:
        node: Of the graph.
        known: What it reads, at least, rounded as it's kept.
        opset: Of the file.
        arithmetic: What numbers are rounded to.
        fixed: Names of constants.

    Returns:
        Its results by name.
    """
    given = {name: known[name] for name in node.input if name}
    if node.op_type in _PRODUCTS:
        given = {name: _operand(node, name, array, arithmetic, fixed) for name, array in given.items()}
    if node.op_type in _RECURRENT:
        results = _recurrent(node, given, opset, arithmetic)
    elif arithmetic.accumulated and node.op_type in {"Conv", "MatMul", "Gemm"}:
        results = [_in_steps(node, [given.get(name) for name in node.input], arithmetic.stored)]
    else:
        results = _run(node, given, opset)
    kept = [_result(node, array, arithmetic) for array in results]
    return {name: array for name, array in zip(node.output, kept, strict=True) if name}


def one_by_one(
    model: onnx.ModelProto,
    feeds: Mapping[str, Array],
    right: Mapping[str, Array],
    arithmetic: Arithmetic,
    layers: Collection[str],
) -> list[float]:
    """How far the results of some nodes are off, each of them fed what's right.

    Args:
        model: Without inner graphs.
        feeds: Samples by input.
        right: All that `simulated` computes in float32.
        arithmetic: What numbers are rounded to.
        layers: Names of nodes.

    Returns:
        Relative L2 of each real result.
    """
    held = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant":
            held[node.output[0]] = _run(node, {}, _opset(model))[0]
    known = {name: _constant(array, arithmetic) for name, array in held.items()}
    known |= {name: _kept(array, arithmetic) for name, array in {**feeds, **right}.items()}
    found = []
    for node in model.graph.node:
        if node.name in layers and node.op_type != "Constant":
            for name, array in _computed(node, known, _opset(model), arithmetic, set(held)).items():
                if _real(array):
                    size, off = (float(np.linalg.norm(item)) for item in (right[name], array - right[name]))
                    found.append(off / size if size else 0.0)
    return found


def _opset(model: onnx.ModelProto) -> int:
    return next(item.version for item in model.opset_import if item.domain in {"", "ai.onnx"})


def _real(array: Array) -> bool:
    return bool(array.dtype == np.float32)


def _kept(array: Array, arithmetic: Arithmetic) -> Array:
    if not _real(array):
        return array
    return on_grid(array) if arithmetic.grid else arithmetic.stored(array)


def _constant(array: Array, arithmetic: Arithmetic) -> Array:
    """Weights lie on a grid that depends on who reads them."""
    return array if arithmetic.grid else _kept(array, arithmetic)


def _operand(node: NodeProto, name: str, array: Array, arithmetic: Arithmetic, fixed: set[str]) -> Array:
    if not _real(array):
        return array
    if not arithmetic.grid:
        return arithmetic.operands(array)
    if name not in fixed or array.ndim < 2:  # a bias has 32 bits
        return array
    if node.op_type in _RECURRENT and name in node.input[3:]:
        return array
    transposed = any(item.name == "transB" and item.i for item in node.attribute)
    return on_grid(array, _WEIGHTS_AXIS.get(node.op_type, 0 if transposed else -1))


def _result(node: NodeProto, array: Array, arithmetic: Arithmetic) -> Array:
    if arithmetic.int32 and array.dtype == np.int64 and node.op_type in _WHOLE:
        return array.astype(np.int32).astype(np.int64)
    if arithmetic.grid and node.op_type in _MOVES:
        return array
    return _kept(array, arithmetic)


def _run(node: NodeProto, given: Mapping[str, Array], opset: int) -> list[Array]:
    """By ONNX Runtime, which adds up in float32."""
    value = helper.make_tensor_value_info
    inputs = [value(name, helper.np_dtype_to_tensor_dtype(a.dtype), [None] * a.ndim) for name, a in given.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "one", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = dict(zip([item.name for item in outputs], session.run(None, _arrays(given)), strict=True))
    return [found.get(name, np.zeros(0, np.float32)) for name in node.output]


def _arrays(given: Mapping[str, Array]) -> Arrays:
    """NumPy makes numbers of arrays without axes, which ONNX Runtime doesn't take."""
    return {name: np.asarray(array) for name, array in given.items()}


def _recurrent(node: NodeProto, given: Mapping[str, Array], opset: int, arithmetic: Arithmetic) -> list[Array]:
    """Step by step: states are kept between steps, each direction by itself."""
    order = [given.get(name) for name in node.input]
    values: list[Array | None] = [*order, *[None] * (7 - len(order))]
    given_x, weights, repeated = (item for item in values[:3] if item is not None)
    states = 2 if node.op_type == "LSTM" else 1
    directions, size = weights.shape[0], repeated.shape[2]
    attribute = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    backward = [False, True] if directions == 2 else [attribute.get("direction", b"forward") == b"reverse"]
    made, last = [], []
    for place, reverse in enumerate(backward):
        one: Any = slice(place, place + 1)
        bias = None if values[3] is None else values[3][one]
        state = [np.zeros((1, given_x.shape[1], size), np.float32) for _ in range(states)]
        for number, initial in enumerate(values[5 : 5 + states]):
            state[number] = state[number] if initial is None else initial[one]
        steps = []
        for x in given_x[::-1] if reverse else given_x:
            state = _step(node, [x[None], weights[one], repeated[one], bias, *state], attribute, opset)
            state = [_kept(arithmetic.operands(item), arithmetic) for item in state]
            steps.append(state[0])
        made.append(np.stack(steps[::-1] if reverse else steps))
        last.append(state)
    results = [np.concatenate(made, axis=1)]
    results += [np.concatenate([item[number] for item in last]) for number in range(states)]
    return results[: len(node.output)]


def _step(node: NodeProto, values: Sequence[Array | None], attribute: Mapping[str, Any], opset: int) -> list[Array]:
    names = ["x", "w", "r", "b", "", "h", "c"]
    order = [*values[:4], None, *values[4:]]
    given = {name: array for name, array in zip(names, order, strict=False) if name and array is not None}
    inputs = [name if name in given else "" for name in names[: len(order)]]
    outputs = ["", "h_out", *(["c_out"] if node.op_type == "LSTM" else [])]
    more = {name: value for name, value in attribute.items() if name in {"hidden_size", "linear_before_reset"}}
    return _run(helper.make_node(node.op_type, inputs, outputs, **more), given, opset)[1:]


def _in_steps(node: NodeProto, given: Sequence[Array | None], rounded: Callable[[Array], Array]) -> Array:
    """A sum of products that's rounded after each of them."""
    attribute = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    one, two = given[0], given[1]
    assert one is not None
    assert two is not None
    bias = given[2] if len(given) > 2 else None
    if node.op_type == "Conv":
        return _convolution(one, two, bias, attribute, rounded)
    if attribute.get("transA"):
        one = one.T
    if attribute.get("transB"):
        two = two.T
    total = _summed(one, two, rounded)
    if "alpha" in attribute:
        total = rounded(total * np.float32(attribute["alpha"]))
    return total if bias is None else rounded(total + np.float32(attribute.get("beta", 1)) * bias)


def _summed(one: Array, two: Array, rounded: Callable[[Array], Array]) -> Array:
    """[..., m, k] times [..., k, n]."""
    total: Any = np.float32(0)
    for place in range(two.shape[-2]):
        total = rounded(total + rounded(one[..., :, place, None] * two[..., None, place, :]))
    return np.asarray(total, np.float32)


def _convolution(
    given: Array, weights: Array, bias: Array | None, attribute: Mapping[str, Any], rounded: Callable[[Array], Array]
) -> Array:
    line = given.ndim == 3
    if line:
        given, weights = given[:, :, None], weights[:, :, None]
    kernel = weights.shape[2:]

    def both(name: str, usual: int) -> list[int]:
        found = list(attribute.get(name, [usual] * (1 if line else 2)))
        return [usual, *found] if line else found

    pads = list(attribute.get("pads", [0] * (2 if line else 4)))
    above, left, below, right = [0, pads[0], 0, pads[1]] if line else pads
    padded = np.pad(given, [(0, 0), (0, 0), (above, below), (left, right)])
    strides, dilations = both("strides", 1), both("dilations", 1)
    groups = int(attribute.get("group", 1))
    columns = torch.nn.functional.unfold(
        torch.from_numpy(padded), tuple(kernel), dilation=tuple(dilations), stride=tuple(strides)
    ).numpy()
    sizes = [
        (padded.shape[2 + axis] - dilations[axis] * (kernel[axis] - 1) - 1) // strides[axis] + 1 for axis in range(2)
    ]
    flat = weights.reshape(groups, weights.shape[0] // groups, -1)
    parts = columns.reshape(len(given), groups, flat.shape[2], -1)
    total = _summed(flat[None], parts, rounded).reshape(len(given), weights.shape[0], *sizes)
    if bias is not None:
        total = rounded(total + bias.reshape(1, -1, 1, 1))
    return total[:, :, 0] if line else total

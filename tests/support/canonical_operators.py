"""What the neutral graph's operators mean, computed by numpy and PyTorch from a node's attributes and parameters.

No framework that a network comes from takes part, so a node that says something else than its framework does shows.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special
import torch
from torch.nn import functional

from conrepair.graph.layer_graph import Node
from conrepair.graph.operators import OPERATORS

Array = npt.NDArray[Any]


def vocabulary_errors(node: Node) -> list[str]:
    """Where a node of a vocabulary operator hasn't exactly the attributes, or has other roles, than that says."""
    operator = OPERATORS.get(node.op)
    if operator is None:
        return []
    errors = []
    if set(node.attributes) != set(operator.attributes):
        errors.append(f"{node.name} ({node.op}): attributes {sorted(node.attributes)}")
    lists = [name for name, value in node.attributes.items() if isinstance(value, list)]
    errors += [f"{node.name} ({node.op}): {name} is a list" for name in lists]
    roles = {re.sub(r"operand_\d+", "operand", role) for role in node.parameters}
    if not roles <= set(operator.parameters):
        errors.append(f"{node.name} ({node.op}): parameters {sorted(node.parameters)}")
    for role, parameter in node.parameters.items():
        numbers = parameter.numpy()
        if numbers.shape != parameter.shape:
            errors.append(f"{node.name} ({node.op}): {role} is {numbers.shape}, not {parameter.shape}")
    return errors


def compute(node: Node, inputs: Mapping[str, Array]) -> list[Array] | None:
    """The node's outputs; None for an operator that isn't written here."""
    rule = _RULES.get(node.op)
    if rule is None:
        return None
    parameters = {role: parameter.numpy() for role, parameter in node.parameters.items()}
    arrays = [inputs[name] for name in node.inputs if name]
    result = rule(node, arrays, parameters)
    return result if isinstance(result, list) else [result]


def _channels_first(node: Node, array: Array) -> torch.Tensor:
    moved = np.moveaxis(array, -1, 1) if node.channels_last else array
    return torch.from_numpy(np.array(moved, np.float32))


def _back(node: Node, tensor: torch.Tensor) -> Array:
    array = tensor.numpy()
    return np.moveaxis(array, 1, -1) if node.channels_last else array


def _padded(node: Node, tensor: torch.Tensor, value: float) -> torch.Tensor:
    pads = node.attributes["pads"]
    axes = len(pads) // 2
    amounts = [amount for axis in reversed(range(axes)) for amount in (pads[axis], pads[axis + axes])]
    return functional.pad(tensor, amounts, value=value)


def _conv(node: Node, arrays: list[Array], parameters: Mapping[str, Array]) -> Array:
    a = node.attributes
    tensor = _padded(node, _channels_first(node, arrays[0]), 0)
    weight = torch.from_numpy(np.array(parameters["weight"], np.float32))
    bias = torch.from_numpy(np.array(parameters["bias"], np.float32)) if "bias" in parameters else None
    assert weight.shape[2:] == tuple(a["kernel_shape"])
    rule = {3: functional.conv1d, 4: functional.conv2d, 5: functional.conv3d}[tensor.ndim]
    return _back(node, rule(tensor, weight, bias, a["strides"], 0, a["dilations"], a["group"]))


def _conv_transpose(node: Node, arrays: list[Array], parameters: Mapping[str, Array]) -> Array:
    a = node.attributes
    tensor = _channels_first(node, arrays[0])
    weight, bias = torch.from_numpy(np.array(parameters["weight"])), parameters.get("bias")
    rule = {3: functional.conv_transpose1d, 4: functional.conv_transpose2d, 5: functional.conv_transpose3d}[
        tensor.ndim
    ]
    full = rule(tensor, weight, None, a["strides"], 0, 0, a["group"], a["dilations"])
    axes = tensor.ndim - 2
    for axis in range(axes):
        begin, end = a["pads"][axis], a["pads"][axis + axes]
        size = full.shape[axis + 2] - begin - end + a["output_padding"][axis]
        short = begin + size - full.shape[axis + 2]
        if short > 0:
            shape = list(full.shape)
            shape[axis + 2] = short
            full = torch.cat([full, torch.zeros(shape)], axis + 2)
        full = full.narrow(axis + 2, begin, size)
    if bias is not None:
        full = full + torch.from_numpy(np.array(bias)).reshape(1, -1, *[1] * axes)
    return _back(node, full)


def _max_pool(node: Node, arrays: list[Array], _: Any) -> Array:
    a = node.attributes
    tensor = _padded(node, _channels_first(node, arrays[0]), -np.inf)
    return _back(node, functional.max_pool2d(tensor, a["kernel_shape"], a["strides"], 0, a["dilations"]))


def _average_pool(node: Node, arrays: list[Array], _: Any) -> Array:
    a = node.attributes
    tensor = _channels_first(node, arrays[0])
    counts = _padded(node, torch.ones_like(tensor), float(a["count_include_pad"]))
    sums = functional.avg_pool2d(_padded(node, tensor, 0), a["kernel_shape"], a["strides"])
    return _back(node, sums / functional.avg_pool2d(counts, a["kernel_shape"], a["strides"]))


def _matmul(node: Node, arrays: list[Array], parameters: Mapping[str, Array]) -> Array:
    given = iter(arrays)
    left, right = (parameters[role] if role in parameters else next(given) for role in ("left", "weight"))
    left = np.swapaxes(left, -1, -2) if node.attributes["transpose_a"] else left
    right = np.swapaxes(right, -1, -2) if node.attributes["transpose_b"] else right
    product = np.matmul(left, right)
    return product + parameters["bias"] if "bias" in parameters else product


def _lstm(node: Node, arrays: list[Array], parameters: Mapping[str, Array]) -> Array:
    a = node.attributes
    assert a["activations"] == ("Sigmoid", "Tanh", "Tanh")
    assert a["direction"] == "forward"
    steps = np.swapaxes(arrays[0], 0, 1) if a["batch_first"] else arrays[0]
    hidden = np.zeros((steps.shape[1], a["hidden_size"]), np.float32)
    cell, results = hidden, []
    weights, recurrent, biases = (parameters[role][0] for role in "WRB")
    bias = biases.reshape(2, -1).sum(0)
    from_cell = np.split(parameters["P"][0] if "P" in parameters else np.zeros(3 * a["hidden_size"]), 3)
    for step in steps:
        into, out, forget, new = np.split(step @ weights.T + hidden @ recurrent.T + bias, 4, -1)
        kept = scipy.special.expit(forget + from_cell[2] * cell) * cell
        cell = kept + scipy.special.expit(into + from_cell[0] * cell) * np.tanh(new)
        hidden = scipy.special.expit(out + from_cell[1] * cell) * np.tanh(cell)
        results.append(hidden)
    return np.stack(results, 1 if a["batch_first"] else 0)


def _gather(node: Node, arrays: list[Array], parameters: Mapping[str, Array]) -> Array:
    rest = iter(arrays)
    table = parameters["table"] if "table" in parameters else next(rest)
    indices = parameters["indices"] if "indices" in parameters else next(rest)
    return np.take(table, indices.astype(int), node.attributes["axis"])


def _where(node: Node, arrays: list[Array], parameters: Mapping[str, Array]) -> Array:
    rest = iter(arrays)
    return np.where(*[parameters[role] if role in parameters else next(rest) for role in ("condition", "x", "y")])


def _concat(node: Node, arrays: list[Array], parameters: Mapping[str, Array]) -> Array:
    rest = iter(arrays)
    constant = (parameters[f"operand_{count}" if count else "operand"] for count in itertools.count())
    pieces = [next(rest if name else constant) for name in node.inputs]
    return np.concatenate(pieces, node.attributes["axis"])


def _split(node: Node, arrays: list[Array], _: Any) -> list[Array]:
    return np.split(arrays[0], np.cumsum(node.attributes["sizes"])[:-1], node.attributes["axis"])


def _slice(node: Node, arrays: list[Array], _: Any) -> Array:
    a, cuts = node.attributes, [slice(None)] * arrays[0].ndim
    for start, end, axis, step in zip(a["starts"], a["ends"], a["axes"], a["steps"], strict=True):
        # Only ends before the first element are negative.
        cuts[axis] = slice(start, None if end < 0 else end, step)
    return arrays[0][tuple(cuts)]


def _pad(node: Node, arrays: list[Array], _: Any) -> Array:
    pads, mode = node.attributes["pads"], node.attributes["mode"]
    amounts = list(zip(pads[: len(pads) // 2], pads[len(pads) // 2 :], strict=True))
    options = {"constant_values": node.attributes["value"]} if mode == "constant" else {}
    return np.pad(arrays[0], amounts, mode, **options)


def _resize(node: Node, arrays: list[Array], _: Any) -> Array:
    a, array = node.attributes, arrays[0].astype(np.float64)
    for axis, scale in enumerate(a["scales"]):
        if scale != 1:
            array = _resized_axis(array, axis, scale, a)
    return array


def _resized_axis(array: Array, axis: int, scale: float, attributes: Mapping[str, Any]) -> Array:
    size = array.shape[axis]
    new = round(size * scale)
    at = np.arange(new)
    places = {
        "half_pixel": (at + 0.5) / scale - 0.5,
        "asymmetric": at / scale,
        "align_corners": at * (size - 1) / max(new - 1, 1),
    }[attributes["coordinate_transformation_mode"]]
    if attributes["mode"] == "nearest":
        rounded = {
            "floor": np.floor(places + 1e-9),
            "round_prefer_ceil": np.floor(places + 0.5 + 1e-9),
            "round_prefer_floor": np.ceil(places - 0.5 - 1e-9),
        }[attributes["nearest_mode"]]
        return np.take(array, np.clip(rounded, 0, size - 1).astype(int), axis)
    below = np.floor(places)
    share = (places - below).reshape([-1 if one == axis else 1 for one in range(array.ndim)])
    lower, upper = (np.take(array, np.clip(below + more, 0, size - 1).astype(int), axis) for more in (0, 1))
    return lower * (1 - share) + upper * share


def _lrn(node: Node, arrays: list[Array], _: Any) -> Array:
    a = node.attributes
    rule = torch.nn.LocalResponseNorm(a["size"], a["alpha"], a["beta"], a["bias"])
    return _back(node, rule(_channels_first(node, arrays[0])))


def _depth_to_space(node: Node, arrays: list[Array], _: Any) -> Array:
    assert node.channels_last
    assert node.attributes["mode"] == "DCR"
    block, (batch, height, width, depth) = node.attributes["blocksize"], arrays[0].shape
    parts = arrays[0].reshape(batch, height, width, block, block, depth // block**2)
    return parts.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height * block, width * block, -1)


def _space_to_depth(node: Node, arrays: list[Array], _: Any) -> Array:
    block, (batch, height, width, depth) = node.attributes["blocksize"], arrays[0].shape
    parts = arrays[0].reshape(batch, height // block, block, width // block, block, depth)
    return parts.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height // block, width // block, -1)


def _cumulative_sum(node: Node, arrays: list[Array], _: Any) -> Array:
    a, array = node.attributes, arrays[0]
    array = np.flip(array, a["axis"]) if a["reverse"] else array
    sums = np.cumsum(array, a["axis"]) - (array if a["exclusive"] else 0)
    return np.flip(sums, a["axis"]) if a["reverse"] else sums


def _unary(function: Callable[[Array], Array]) -> Any:
    return lambda node, arrays, parameters: function(arrays[0])


def _torch(function: Callable[..., torch.Tensor]) -> Any:
    return lambda node, arrays, parameters: function(torch.from_numpy(arrays[0]), node.attributes).numpy()


def _binary(function: Callable[[Array, Array], Array]) -> Any:
    def rule(node: Node, arrays: list[Array], parameters: Mapping[str, Array]) -> Array:
        operands = [*arrays, *([parameters["operand"]] if "operand" in parameters else [])]
        if node.attributes["constant_first"]:
            operands.reverse()
        return function(*operands)

    return rule


def _reduction(function: Callable[..., Array]) -> Any:
    return lambda node, arrays, parameters: function(
        arrays[0], axis=node.attributes["axes"], keepdims=node.attributes["keepdims"]
    )


def _extreme(function: Callable[..., Array]) -> Any:
    return lambda node, arrays, parameters: function(
        arrays[0], axis=node.attributes["axis"], keepdims=node.attributes["keepdims"]
    )


def _attribute(function: Callable[[Array, Any], Array], name: str) -> Any:
    return lambda node, arrays, parameters: function(arrays[0], node.attributes[name])


_RULES: Mapping[str, Any] = {
    "Conv": _conv, "ConvTranspose": _conv_transpose, "MaxPool": _max_pool, "AveragePool": _average_pool,
    "MatMul": _matmul, "LSTM": _lstm, "Gather": _gather, "Where": _where, "Concat": _concat, "Split": _split,
    "Slice": _slice, "Pad": _pad, "Resize": _resize, "LRN": _lrn, "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth, "CumSum": _cumulative_sum,
    "Relu": _unary(lambda x: np.maximum(x, 0)), "Sigmoid": _unary(scipy.special.expit), "Tanh": _unary(np.tanh),
    "Exp": _unary(np.exp), "Log": _unary(np.log), "Sqrt": _unary(np.sqrt), "Rsqrt": _unary(lambda x: 1 / np.sqrt(x)),
    "Square": _unary(np.square), "Neg": _unary(np.negative), "Abs": _unary(np.abs), "Sign": _unary(np.sign),
    "Floor": _unary(np.floor), "Ceil": _unary(np.ceil), "Round": _unary(np.round), "Sin": _unary(np.sin),
    "Cos": _unary(np.cos), "Not": _unary(np.logical_not), "Identity": _unary(lambda x: x),
    "HardSwish": _torch(lambda x, a: functional.hardswish(x)),
    "Gelu": _torch(lambda x, a: functional.gelu(x, approximate=a["approximate"])),
    "LeakyRelu": _torch(lambda x, a: functional.leaky_relu(x, a["alpha"])),
    "Elu": _torch(lambda x, a: functional.elu(x, a["alpha"])),
    "Softmax": _torch(lambda x, a: functional.softmax(x, a["axis"])),
    "LogSoftmax": _torch(lambda x, a: functional.log_softmax(x, a["axis"])),
    "Clip": _torch(lambda x, a: torch.clip(x, a["min"], a["max"])),
    "LpNormalization": _torch(
        lambda x, a: x / (x.abs() ** a["p"]).sum(a["axes"], keepdim=True).clip(min=a["epsilon"]) ** (1 / a["p"])
    ),
    "PRelu": lambda node, arrays, parameters: np.where(arrays[0] < 0, parameters["slope"] * arrays[0], arrays[0]),
    "Add": _binary(np.add), "Sub": _binary(np.subtract), "Mul": _binary(np.multiply), "Div": _binary(np.divide),
    "Pow": _binary(np.power), "Min": _binary(np.minimum), "Max": _binary(np.maximum), "Mod": _binary(np.mod),
    "And": _binary(np.logical_and), "Or": _binary(np.logical_or), "Xor": _binary(np.bitwise_xor),
    "Equal": _binary(np.equal), "Greater": _binary(np.greater), "GreaterOrEqual": _binary(np.greater_equal),
    "Less": _binary(np.less), "LessOrEqual": _binary(np.less_equal),
    "ReduceMean": _reduction(np.mean), "ReduceSum": _reduction(np.sum), "ReduceMax": _reduction(np.max),
    "ReduceMin": _reduction(np.min), "ReduceProd": _reduction(np.prod),
    "ArgMax": _extreme(np.argmax), "ArgMin": _extreme(np.argmin),
    "Reshape": _attribute(np.reshape, "shape"), "Expand": _attribute(np.broadcast_to, "shape"),
    "Transpose": _attribute(np.transpose, "perm"), "Tile": _attribute(np.tile, "repeats"),
    "Cast": _attribute(lambda x, to: x.astype(to), "to"),
    "Stack": lambda node, arrays, parameters: np.stack(arrays, node.attributes["axis"]),
    "QuantizeLinear": _unary(lambda x: x), "DequantizeLinear": _unary(lambda x: x),
}  # fmt: skip

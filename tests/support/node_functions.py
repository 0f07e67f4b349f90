"""What nodes of the neutral graph compute, by numpy and ONNX Runtime: written from the vocabulary alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.graph.layer_graph import Node
from conrepair.runtime.onnx_session import open_session

Array = npt.NDArray[Any]


def compute(node: Node, inputs: list[Array]) -> Array | None:
    """The node's first output; None for operators that aren't written here."""
    function = _FUNCTIONS.get(node.op)
    return None if function is None else function(node, inputs)


def by_onnx(op: str, inputs: list[Array | None], outputs: int = 1, opset: int = 19, **attributes: Any) -> list[Array]:
    """Run one ONNX operator."""
    import onnx
    from onnx import helper

    names = [f"i{index}" if value is not None else "" for index, value in enumerate(inputs)]
    given = {name: value for name, value in zip(names, inputs, strict=True) if value is not None}
    results = [f"o{index}" for index in range(outputs)]
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in given.items()}
    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attributes)],
        "node",
        [helper.make_tensor_value_info(name, kinds[name], value.shape) for name, value in given.items()],
        [helper.make_tensor_value_info(name, kinds["i0"], None) for name in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    session = open_session(model.SerializeToString(), threads=1)
    del onnx
    return [np.asarray(value) for value in session.run(None, given)]


def _role(node: Node, role: str) -> Array | None:
    return node.parameters[role].numpy() if role in node.parameters else None


def _channels_first(node: Node, array: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(array, -1, 1)) if node.channels_last else array


def _back(node: Node, array: Array) -> Array:
    return np.moveaxis(array, 1, -1) if node.channels_last else array


_WINDOW = ("kernel_shape", "strides", "pads", "dilations")


def _window(node: Node, inputs: list[Array]) -> Array:
    attributes = {name: node.attributes[name] for name in (*_WINDOW, "group") if name in node.attributes}
    if node.op == "ConvTranspose":
        attributes["output_padding"] = node.attributes["output_padding"]
    if node.op.endswith("Pool"):
        attributes["ceil_mode"] = int(bool(node.attributes["ceil_mode"]))
    if node.op == "AveragePool":
        attributes["count_include_pad"] = int(bool(node.attributes["count_include_pad"]))
    operands: list[Array | None] = [_channels_first(node, inputs[0])]
    if node.op.startswith("Conv"):
        operands += [_role(node, "weight"), _role(node, "bias")]
    return _back(node, by_onnx(node.op, operands, **attributes)[0])


def _matmul(node: Node, inputs: list[Array]) -> Array:
    left, right = inputs[0], inputs[1] if len(inputs) > 1 else node.parameters["weight"].numpy()
    left = np.swapaxes(left, -1, -2) if node.attributes["transpose_a"] else left
    right = np.swapaxes(right, -1, -2) if node.attributes["transpose_b"] else right
    bias = _role(node, "bias")
    product = np.matmul(left, right)
    return product if bias is None else product + bias


def _along_channels(node: Node, array: Array, rank: int) -> Array:
    return array if node.channels_last else array.reshape(-1, *[1] * (rank - 2))


def _scaled(node: Node, normal: Array, arrange: Callable[[Array], Array]) -> Array:
    scale, bias = _role(node, "scale"), _role(node, "bias")
    normal = normal if scale is None else normal * arrange(scale)
    return normal if bias is None else normal + arrange(bias)


def _batch_normalization(node: Node, inputs: list[Array]) -> Array:
    def arrange(values: Array) -> Array:
        return _along_channels(node, values, inputs[0].ndim)

    mean, variance = (arrange(node.parameters[role].numpy()) for role in ("mean", "variance"))
    normal = (inputs[0] - mean) / np.sqrt(variance + node.attributes["epsilon"])
    return _scaled(node, normal, arrange)


def _layer_normalization(node: Node, inputs: list[Array]) -> Array:
    axes, epsilon = node.attributes["axes"], node.attributes["epsilon"]
    centred = inputs[0] if node.op == "RMSNormalization" else inputs[0] - inputs[0].mean(axes, keepdims=True)
    return _scaled(node, centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon), lambda values: values)


def _group_normalization(node: Node, inputs: list[Array]) -> Array:
    first = _channels_first(node, inputs[0])
    groups = first.reshape(len(first), int(node.attributes["groups"]), -1)
    centred = groups - groups.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + node.attributes["epsilon"])
    whole = _back(node, normal.reshape(first.shape))
    return _scaled(node, whole, lambda values: _along_channels(node, values, whole.ndim))


def _recurrent(node: Node, inputs: list[Array]) -> Array | None:
    if len(inputs) > 1:  # a mask, or a state
        return None
    attributes = node.attributes
    directions = node.parameters["W"].shape[0]
    options: dict[str, Any] = {
        "hidden_size": attributes["hidden_size"],
        "direction": attributes["direction"],
        "activations": [*attributes["activations"]] * directions,
    }
    if node.op == "GRU":
        options["linear_before_reset"] = int(attributes["linear_before_reset"])
    sequence = np.swapaxes(inputs[0], 0, 1) if attributes["batch_first"] else inputs[0]
    operands = [np.ascontiguousarray(sequence), *(_role(node, role) for role in ("W", "R", "B"))]
    steps, last = by_onnx(node.op, operands, 2, 14, **options)
    if attributes["return_sequences"]:  # [steps, directions, batch, hidden]
        merged = np.moveaxis(steps, 1, 2).reshape(len(steps), steps.shape[2], -1)
        return np.swapaxes(merged, 0, 1) if attributes["batch_first"] else merged
    return np.swapaxes(last, 0, 1).reshape(last.shape[1], -1)


def _attention(node: Node, inputs: list[Array]) -> Array | None:
    if len(inputs) > 3 or node.attributes["is_causal"]:
        return None
    heads = int(node.attributes["num_heads"])

    def projected(role: str, array: Array) -> Array:
        bias = _role(node, f"{role}_bias")
        whole = array @ node.parameters[role].numpy() + (0 if bias is None else bias)
        return np.swapaxes(whole.reshape(*whole.shape[:2], heads, -1), 1, 2)

    query, key, value = map(projected, ("query", "key", "value"), inputs)
    scores = query @ np.swapaxes(key, -1, -2) * node.attributes["scale"]
    mixed = np.swapaxes(_softmax(scores, -1) @ value, 1, 2)
    bias = _role(node, "output_bias")
    result: Array = mixed.reshape(*mixed.shape[:2], -1) @ node.parameters["output"].numpy()
    return result if bias is None else result + bias


def _softmax(array: Array, axis: int) -> Array:
    powers = np.exp(array - array.max(axis, keepdims=True))
    result: Array = powers / powers.sum(axis, keepdims=True)
    return result


def _binary(function: Callable[[Array, Array], Array]) -> Callable[[Node, list[Array]], Array]:
    def run(node: Node, inputs: list[Array]) -> Array:
        operand = _role(node, "operand")
        pair = inputs if operand is None else [inputs[0], operand.astype(inputs[0].dtype)]
        return function(*(reversed(pair) if node.attributes["constant_first"] else pair))

    return run


def _reduction(function: Callable[..., Array]) -> Callable[[Node, list[Array]], Array]:
    return lambda node, inputs: function(
        inputs[0], axis=node.attributes["axes"], keepdims=node.attributes["keepdims"]
    )


def _gather(node: Node, inputs: list[Array]) -> Array:
    table = _role(node, "table")
    indices = _role(node, "indices")
    table = inputs[0] if table is None else table
    return np.take(table, inputs[-1] if indices is None else indices, axis=int(node.attributes["axis"]))


def _pad(node: Node, inputs: list[Array]) -> Array:
    pads = np.reshape(node.attributes["pads"], (2, -1)).T
    if node.attributes["mode"] == "constant":
        cut = zip(np.maximum(-pads, 0), inputs[0].shape, strict=True)  # negative ones take away
        kept = inputs[0][tuple(slice(begin, size - end) for (begin, end), size in cut)]
        return np.pad(kept, np.maximum(pads, 0), constant_values=node.attributes["value"])
    return np.pad(inputs[0], pads, mode=node.attributes["mode"])


def _slice(node: Node, inputs: list[Array]) -> Array:
    key = [slice(None)] * inputs[0].ndim
    attributes: Mapping[str, Any] = node.attributes
    for start, end, axis, step in zip(
        *(attributes[name] for name in ("starts", "ends", "axes", "steps")), strict=True
    ):
        key[axis] = slice(start, end, step)
    return inputs[0][tuple(key)]


def _resize(node: Node, inputs: list[Array]) -> Array:
    attributes = node.attributes
    scales = np.asarray(attributes["scales"], np.float32)
    options = {name: attributes[name] for name in ("mode", "coordinate_transformation_mode", "nearest_mode")}
    if node.channels_last:
        scales = np.moveaxis(scales[None], -1, 0).ravel()[[0, -1, *range(1, len(scales) - 1)]]
    if options["mode"] == "cubic":
        options |= {"cubic_coeff_a": attributes["cubic_coeff_a"]}
    return _back(node, by_onnx("Resize", [_channels_first(node, inputs[0]), None, scales], **options)[0])


def _cumulative(value: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    given = np.flip(value, axis) if reverse else value
    total = np.cumsum(given, axis) - (given if exclusive else 0)
    return np.flip(total, axis) if reverse else total


def _local_response(node: Node, inputs: list[Array]) -> Array:
    return _back(node, by_onnx("LRN", [_channels_first(node, inputs[0])], **node.attributes)[0])


def _erf(array: Array) -> Array:
    from scipy.special import erf

    return np.asarray(erf(array))


def _gelu(node: Node, inputs: list[Array]) -> Array:
    value = inputs[0]
    if node.attributes["approximate"] == "tanh":
        return 0.5 * value * (1 + np.tanh(np.sqrt(2 / np.pi) * (value + 0.044715 * value**3)))
    return 0.5 * value * (1 + _erf(value / np.sqrt(2)))


def _plain(function: Callable[..., Array]) -> Callable[[Node, list[Array]], Array]:
    """A function of one tensor and the node's attributes by name."""
    return lambda node, inputs: function(inputs[0], **node.attributes)


def _sigmoid(value: Array) -> Array:
    return 1 / (1 + np.exp(-value))


def _where(node: Node, inputs: list[Array]) -> Array:
    rest = iter(inputs)
    operands = [
        node.parameters[role].numpy() if role in node.parameters else next(rest) for role in ["condition", "x", "y"]
    ]
    return np.where(*operands)


_FUNCTIONS: dict[str, Callable[[Node, list[Array]], Array | None]] = {
    **dict.fromkeys(("Conv", "ConvTranspose", "MaxPool", "AveragePool"), _window),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _layer_normalization),
    "MatMul": _matmul,
    "BatchNormalization": _batch_normalization,
    "GroupNormalization": _group_normalization,
    "Attention": _attention,
    "Gather": _gather,
    "Pad": _pad,
    "Slice": _slice,
    "Resize": _resize,
    "Gelu": _gelu,
    "Add": _binary(np.add),
    "Sub": _binary(np.subtract),
    "Mul": _binary(np.multiply),
    "Div": _binary(np.divide),
    "Pow": _binary(np.power),
    "Max": _binary(np.maximum),
    "Min": _binary(np.minimum),
    "Greater": _binary(np.greater),
    "Less": _binary(np.less),
    "Equal": _binary(np.equal),
    "ReduceMean": _reduction(np.mean),
    "ReduceMax": _reduction(np.max),
    "ReduceSum": _reduction(np.sum),
    "ReduceMin": _reduction(np.min),
    "ReduceProd": _reduction(np.prod),
    "Relu": _plain(lambda value: np.maximum(value, 0)),
    "Clip": lambda node, inputs: np.clip(inputs[0], node.attributes["min"], node.attributes["max"]),
    "LeakyRelu": _plain(lambda value, alpha: np.where(value < 0, alpha * value, value)),
    "PRelu": lambda node, inputs: np.where(inputs[0] < 0, node.parameters["slope"].numpy() * inputs[0], inputs[0]),
    "Shrink": _plain(
        lambda value, lambd, bias: np.where(value < -lambd, value + bias, np.where(value > lambd, value - bias, 0))
    ),
    "ThresholdedRelu": _plain(lambda value, alpha: np.where(value > alpha, value, 0)),
    "Elu": _plain(lambda value, alpha: np.where(value < 0, alpha * np.expm1(value), value)),
    "Selu": _plain(lambda value, alpha, gamma: gamma * np.where(value < 0, alpha * np.expm1(value), value)),
    "Swish": _plain(lambda value, alpha: value * _sigmoid(alpha * value)),
    "HardSigmoid": _plain(lambda value, alpha, beta: np.clip(alpha * value + beta, 0, 1)),
    "HardSwish": _plain(lambda value: value * np.clip(value / 6 + 0.5, 0, 1)),
    "Softmax": _plain(_softmax),
    "LogSoftmax": _plain(lambda value, axis: np.log(_softmax(value, axis))),
    "LpNormalization": _plain(
        lambda value, p, axes, epsilon: (
            value / np.maximum((np.abs(value) ** p).sum(axes, keepdims=True), epsilon) ** (1 / p)
        )
    ),
    "Sigmoid": _plain(_sigmoid),
    "Tanh": _plain(np.tanh),
    "Exp": _plain(np.exp),
    "Sqrt": _plain(np.sqrt),
    "Sin": _plain(np.sin),
    "Cos": _plain(np.cos),
    "Abs": _plain(np.abs),
    "Neg": _plain(np.negative),
    "Square": _plain(np.square),
    "Rsqrt": _plain(lambda value: 1 / np.sqrt(value)),
    "Erf": _plain(_erf),
    "Log": _plain(np.log),
    "Softplus": _plain(lambda value: np.logaddexp(value, 0)),
    "Not": _plain(np.logical_not),
    "Softsign": _plain(lambda value: value / (1 + np.abs(value))),
    "Mish": _plain(lambda value: value * np.tanh(np.logaddexp(value, 0))),
    "Identity": _plain(lambda value: value),
    "Reshape": _plain(lambda value, shape: value.reshape(shape)),
    "Transpose": _plain(lambda value, perm: value.transpose(perm)),
    "Expand": _plain(lambda value, shape: np.broadcast_to(value, shape)),
    "Tile": _plain(lambda value, repeats: np.tile(value, repeats)),
    "Cast": _plain(lambda value, to: value.astype(to)),
    "Concat": lambda node, inputs: np.concatenate(inputs, axis=int(node.attributes["axis"])),
    "Stack": lambda node, inputs: np.stack(inputs, axis=int(node.attributes["axis"])),
    "Split": _plain(lambda value, axis, sizes: np.split(value, np.cumsum(sizes)[:-1], axis)[0]),
    "ArgMax": _plain(lambda value, axis, keepdims: np.argmax(value, axis, keepdims=keepdims)),
    "Einsum": lambda node, inputs: np.einsum(str(node.attributes["equation"]), *inputs),
    "Where": _where,
    "And": _binary(np.logical_and),
    "Or": _binary(np.logical_or),
    "CumSum": _plain(_cumulative),
    "LRN": _local_response,
}

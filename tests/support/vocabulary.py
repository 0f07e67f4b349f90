"""Compute nodes of the neutral graph from their attributes and parameters alone, by ONNX Runtime or numpy.

Frameworks' graphs are tested with it: what a node says must be what its framework computes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.graph.operators import OPERATORS
from conrepair.runtime.onnx_session import open_session

Array = npt.NDArray[Any]

_OPSET = 21
_NUMBERED = re.compile(r"^operand_\d+$")
# Attributes that ONNX has under the same name.
_PLAIN = {
    "Conv": ("kernel_shape", "strides", "pads", "dilations", "group"),
    "ConvTranspose": ("kernel_shape", "strides", "pads", "dilations", "group", "output_padding"),
    "MaxPool": ("kernel_shape", "strides", "pads", "dilations", "ceil_mode"),
    "AveragePool": ("kernel_shape", "strides", "pads", "dilations", "ceil_mode", "count_include_pad"),
    "BatchNormalization": ("epsilon",), "InstanceNormalization": ("epsilon",), "Elu": ("alpha",), "Celu": ("alpha",),
    "LeakyRelu": ("alpha",), "Selu": ("alpha", "gamma"), "Gelu": ("approximate",), "HardSigmoid": ("alpha", "beta"),
    "Shrink": ("lambd", "bias"),
    "ThresholdedRelu": ("alpha",), "Softmax": ("axis",), "LogSoftmax": ("axis",), "Gather": ("axis",),
    "DepthToSpace": ("blocksize", "mode"), "Transpose": ("perm",),
    "ArgMax": ("axis", "keepdims"), "ArgMin": ("axis", "keepdims"), "Concat": ("axis",),
    **dict.fromkeys(
        ("Relu", "PRelu", "HardSwish", "Sigmoid", "Tanh", "Softplus", "Softsign", "Mish", "Erf", "Exp", "Log", "Sqrt",
         "Neg", "Reciprocal", "Abs", "Sign", "Floor", "Ceil", "Round", "Sin", "Cos", "Not", "Identity"), ()),
}  # fmt: skip
_ROLES = {
    "Conv": ("weight", "bias"), "ConvTranspose": ("weight", "bias"), "PRelu": ("slope",),
    "BatchNormalization": ("scale", "bias", "mean", "variance"), "InstanceNormalization": ("scale", "bias"),
}  # fmt: skip
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_NUMPY: Mapping[str, Callable[..., Array]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power, "Min": np.minimum,
    "Max": np.maximum, "And": np.logical_and, "Or": np.logical_or, "Equal": np.equal, "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal, "Less": np.less, "LessOrEqual": np.less_equal,
    "Rsqrt": lambda x: 1 / np.sqrt(x), "Square": np.square, "Log1p": np.log1p, "Expm1": np.expm1,
}  # fmt: skip
_REDUCTIONS: Mapping[str, Callable[..., Array]] = {
    "ReduceMean": np.mean, "ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod,
    "ReduceL2": lambda x, **options: np.sqrt(np.sum(np.square(x), **options)),
    "ReduceSumSquare": lambda x, **options: np.sum(np.square(x), **options),
}  # fmt: skip


def assert_follows_vocabulary(graph: LayerGraph) -> None:
    """Exactly the vocabulary's attributes, only its roles, values of plain types, parameters as they say."""
    for node in graph.nodes:
        if node.op in OPERATORS:
            assert set(node.attributes) == set(OPERATORS[node.op].attributes), node
            roles = {_NUMBERED.sub("operand", role) for role in node.parameters}
            assert roles <= set(OPERATORS[node.op].parameters), node
        for value in node.attributes.values():
            items = value if isinstance(value, tuple) else (value,)
            assert all(item is None or type(item) in {int, float, str, bool} for item in items), node
        for parameter in node.parameters.values():
            array = parameter.numpy()
            assert (array.shape, array.dtype.name) == (parameter.shape, parameter.dtype), parameter
    names = [node.name for node in graph.nodes]
    assert len(names) == len(set(names))


def computed(node: Node, values: Mapping[str, Array]) -> list[Array] | None:
    """A node's outputs, channels first; None for an operator that isn't known here."""
    given = [values[name] for name in node.inputs if name]
    roles = {role: parameter.numpy() for role, parameter in node.parameters.items()}
    if node.op in _GATES:
        return _recurrent(node, given, roles)
    if node.op in _OWN:
        return _as_list(_OWN[node.op](node, given, roles))
    if node.op in _REDUCTIONS:
        options = {"axis": node.attributes["axes"], "keepdims": node.attributes["keepdims"]}
        return [np.asarray(_REDUCTIONS[node.op](given[0], **options))]
    if node.op in _NUMPY:
        operand = [roles["operand"]] if roles else []
        arrays = [*operand, *given] if node.attributes.get("constant_first") else [*given, *operand]
        return [np.asarray(_NUMPY[node.op](*arrays))]
    if node.op in _PLAIN:
        named = _ROLES.get(node.op, ())
        extra = [roles[role] for role in named if role in roles]
        attributes = {name: node.attributes[name] for name in _PLAIN[node.op]}
        return _onnx(node.op, [*given, *extra], attributes)
    return None


def _onnx(op: str, arrays: list[Array | None], attributes: Mapping[str, Any], outputs: int = 1) -> list[Array]:
    names = ["" if array is None else f"x{index}" for index, array in enumerate(arrays)]
    feeds = {name: np.asarray(array) for name, array in zip(names, arrays, strict=True) if name}
    results = [f"y{index}" for index in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attributes)],
        "one",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in feeds.items()
        ],
        [helper.make_value_info(name, onnx.TypeProto()) for name in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=10)
    inferred = onnx.shape_inference.infer_shapes(model).graph.output
    kinds = [value.type.tensor_type.elem_type or onnx.TensorProto.FLOAT for value in inferred]
    del model.graph.output[:]
    model.graph.output.extend(
        helper.make_tensor_value_info(name, kind, None) for name, kind in zip(results, kinds, strict=True)
    )
    session = open_session(model.SerializeToString(), threads=1)
    return list(session.run(results, feeds))


def _as_list(value: Any) -> list[Array]:
    return list(value) if isinstance(value, list | tuple) else [np.asarray(value)]


def _int64(values: Any) -> Array:
    return np.array(values, np.int64)


def _matmul(node: Node, given: list[Array], roles: Mapping[str, Array]) -> Array:
    first, second = [roles["left"], *given] if "left" in roles else [*given, roles.get("weight")][:2]
    first = np.swapaxes(first, -1, -2) if node.attributes["transpose_a"] else first
    second = np.swapaxes(second, -1, -2) if node.attributes["transpose_b"] else second
    return np.asarray(first @ second + roles.get("bias", 0))


def _layer_norm(node: Node, given: list[Array], roles: Mapping[str, Array]) -> list[Array]:
    axes = node.attributes["axes"]
    assert isinstance(axes, tuple)
    arrays = [given[0], roles["scale"], roles.get("bias")]
    return _onnx(node.op, arrays, {"axis": axes[0], "epsilon": node.attributes["epsilon"]})


def _rms_norm(node: Node, given: list[Array], roles: Mapping[str, Array]) -> Array:
    mean = np.mean(np.square(given[0]), axis=node.attributes["axes"], keepdims=True)
    return np.asarray(given[0] / np.sqrt(mean + node.attributes["epsilon"]) * roles["scale"])


def _group_norm(node: Node, given: list[Array], roles: Mapping[str, Array]) -> list[Array]:
    attributes = {"num_groups": node.attributes["groups"], "epsilon": node.attributes["epsilon"]}
    return _onnx(node.op, [given[0], roles["scale"], roles["bias"]], attributes)


def _clip(node: Node, given: list[Array], roles: Mapping[str, Array]) -> Array:
    return np.clip(given[0], node.attributes["min"], node.attributes["max"])  # type: ignore[arg-type]


def _swish(node: Node, given: list[Array], roles: Mapping[str, Array]) -> Array:
    alpha = np.float32(node.attributes["alpha"])  # type: ignore[arg-type]
    return np.asarray(given[0] / (1 + np.exp(-alpha * given[0])))


def _pad(node: Node, given: list[Array], roles: Mapping[str, Array]) -> list[Array]:
    value = np.array(node.attributes["value"], given[0].dtype)
    return _onnx("Pad", [given[0], _int64(node.attributes["pads"]), value], {"mode": node.attributes["mode"]})


def _slice(node: Node, given: list[Array], roles: Mapping[str, Array]) -> list[Array]:
    parts = [_int64(node.attributes[name]) for name in ("starts", "ends", "axes", "steps")]
    return _onnx("Slice", [given[0], *parts], {})


def _split(node: Node, given: list[Array], roles: Mapping[str, Array]) -> list[Array]:
    sizes = node.attributes["sizes"]
    assert isinstance(sizes, tuple)
    return _onnx("Split", [given[0], _int64(sizes)], {"axis": node.attributes["axis"]}, len(sizes))


def _resize(node: Node, given: list[Array], roles: Mapping[str, Array]) -> list[Array]:
    attributes = {name: value for name, value in node.attributes.items() if name != "scales"}
    return _onnx("Resize", [given[0], None, np.array(node.attributes["scales"], np.float32)], attributes)


def _gather(node: Node, given: list[Array], roles: Mapping[str, Array]) -> Array:
    data = roles["table"] if "table" in roles else given[0]
    indices = roles["indices"] if "indices" in roles else given[-1]
    return np.take(data, indices, axis=node.attributes["axis"])  # type: ignore[call-overload, no-any-return]


def _where(node: Node, given: list[Array], roles: Mapping[str, Array]) -> Array:
    rest = iter(given)
    return np.where(*[roles[role] if role in roles else next(rest) for role in ("condition", "x", "y")])


def _pieces(node: Node, given: list[Array], roles: Mapping[str, Array]) -> list[Array]:
    """Constants stand where the inputs have ""."""
    rest, constants = iter(given), (roles[f"operand_{n}" if n else "operand"] for n in itertools.count())
    return [next(rest) if name else next(constants) for name in node.inputs]


def _concat(node: Node, given: list[Array], roles: Mapping[str, Array]) -> Array:
    return np.concatenate(_pieces(node, given, roles), node.attributes["axis"])


def _einsum(node: Node, given: list[Array], roles: Mapping[str, Array]) -> list[Array]:
    return _onnx("Einsum", list(_pieces(node, given, roles)), {"equation": node.attributes["equation"]})


_OWN: Mapping[str, Callable[[Node, list[Array], Mapping[str, Array]], Any]] = {
    "MatMul": _matmul,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm,
    "Clip": _clip,
    "Swish": _swish,
    "Pad": _pad,
    "Slice": _slice,
    "Split": _split,
    "Resize": _resize,
    "Gather": _gather,
    "Where": _where,
    "Concat": _concat,
    "Einsum": _einsum,
    "Reshape": lambda node, given, roles: given[0].reshape(node.attributes["shape"]),
    "Expand": lambda node, given, roles: np.broadcast_to(given[0], node.attributes["shape"]),
    "Tile": lambda node, given, roles: np.tile(given[0], node.attributes["repeats"]),
    "Stack": lambda node, given, roles: np.stack(given, node.attributes["axis"]),
    "Cast": lambda node, given, roles: given[0].astype(node.attributes["to"]),
    "CumSum": lambda node, given, roles: np.cumsum(given[0], node.attributes["axis"]),
}


def _recurrent(node: Node, given: list[Array], roles: Mapping[str, Array]) -> list[Array]:
    """In the layout that a network has: directions side by side in the last axis."""
    sequence = given[0].swapaxes(0, 1) if node.attributes["batch_first"] else given[0]
    states: list[Array | None] = list(given[1:]) or [roles.get("initial_h"), roles.get("initial_c")]
    attributes = {name: node.attributes[name] for name in ("hidden_size", "direction")}
    if node.attributes["activations"]:
        attributes["activations"] = node.attributes["activations"]
    if node.op == "GRU":
        attributes["linear_before_reset"] = int(bool(node.attributes["linear_before_reset"]))
    count = 3 if node.op == "LSTM" else 2
    arrays = [sequence, roles["W"], roles["R"], roles.get("B"), None, *states[: count - 1]]
    assert roles["W"].shape[1] == _GATES[node.op] * attributes["hidden_size"]  # type: ignore[operator]
    result, *final = _onnx(node.op, arrays, attributes, count)
    result = np.concatenate([result[:, index] for index in range(result.shape[1])], -1)
    return [result.swapaxes(0, 1) if node.attributes["batch_first"] else result, *final]

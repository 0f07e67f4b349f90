"""Keras layers and functions in the neutral vocabulary: operators, attributes, parameters and their layouts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from conrepair.graph.layer_graph import Array, Attribute

__all__ = [
    "FUNCTIONS",
    "FUSING",
    "function_attributes",
    "function_of",
    "layout_of",
    "meaning_of",
    "variables_of",
]

FUNCTIONS = {
    "relu": "Relu",
    "relu6": "Clip",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "elu": "Elu",
    "selu": "Selu",
    "gelu": "Gelu",
    "silu": "Swish",
    "hard_sigmoid": "HardSigmoid",
    "hard_silu": "HardSwish",
    "mish": "Mish",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "softmax": "Softmax",
    "log_softmax": "LogSoftmax",
    "leaky_relu": "LeakyRelu",
}
_LAYERS = {
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D", "DepthwiseConv1D", "DepthwiseConv2D"), "Conv"),
    **dict.fromkeys(("Conv1DTranspose", "Conv2DTranspose"), "ConvTranspose"),
    "Dense": "MatMul",
    "BatchNormalization": "BatchNormalization",
    "LayerNormalization": "LayerNormalization",
    "GroupNormalization": "GroupNormalization",
    "Embedding": "Gather",
    "LSTM": "LSTM",
    "GRU": "GRU",
    "MultiHeadAttention": "Attention",
    "LeakyReLU": "LeakyRelu",
    "ELU": "Elu",
    "PReLU": "PRelu",
    "Softmax": "Softmax",
    **dict.fromkeys(("MaxPooling1D", "MaxPooling2D"), "MaxPool"),
    **dict.fromkeys(("AveragePooling1D", "AveragePooling2D"), "AveragePool"),
    **dict.fromkeys(("GlobalAveragePooling1D", "GlobalAveragePooling2D"), "ReduceMean"),
    **dict.fromkeys(("GlobalMaxPooling1D", "GlobalMaxPooling2D"), "ReduceMax"),
    "Add": "Add",
    "Subtract": "Sub",
    "Multiply": "Mul",
    "Divide": "Div",
    "Maximum": "Max",
    "Minimum": "Min",
    "Concatenate": "Concat",
    "Flatten": "Reshape",
    "Reshape": "Reshape",
    "Permute": "Transpose",
    "ZeroPadding2D": "Pad",
    "UpSampling2D": "Resize",
}
_OPERATIONS = {  # functions of keras.ops
    "Relu": "Relu",
    "Relu6": "Clip",
    "Sigmoid": "Sigmoid",
    "Tanh": "Tanh",
    "Elu": "Elu",
    "Selu": "Selu",
    "Gelu": "Gelu",
    "Silu": "Swish",
    "HardSigmoid": "HardSigmoid",
    "HardSilu": "HardSwish",
    "Mish": "Mish",
    "Softplus": "Softplus",
    "Softsign": "Softsign",
    "Softmax": "Softmax",
    "LeakyRelu": "LeakyRelu",
    "Add": "Add",
    "Subtract": "Sub",
    "Multiply": "Mul",
    "Divide": "Div",
    "Maximum": "Max",
    "Minimum": "Min",
    "Concatenate": "Concat",
    "Reshape": "Reshape",
    "Transpose": "Transpose",
    "Pad": "Pad",
}
FUSING = {"Conv", "ConvTranspose", "MatMul"}

_PROJECTIONS = ("query", "key", "value", "output")

VARIABLES: Mapping[str, Mapping[str, str]] = {
    **{key: {"weight": "kernel", "bias": "bias"} for key in ("Conv", "ConvTranspose", "MatMul")},
    "BatchNormalization": {
        "scale": "gamma",
        "bias": "beta",
        "mean": "moving_mean",
        "variance": "moving_variance",
    },
    **{key: {"scale": "gamma", "bias": "beta"} for key in ("LayerNormalization", "GroupNormalization")},
    "Gather": {"table": "embeddings"},
    "PRelu": {"slope": "alpha"},
    **{key: {"W": "kernel", "R": "recurrent_kernel"} for key in ("LSTM", "GRU")},
    "Attention": {
        **{role: f"_{role}_dense.kernel" for role in _PROJECTIONS},
        **{f"{role}_bias": f"_{role}_dense.bias" for role in _PROJECTIONS},
    },
}
"""The attribute of a layer, or of one inside, that holds a parameter, by operator and role."""

_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (0, 1, 2)}  # ONNX's order from Keras's, by gate
_Layout = Callable[[Array], Array]


def meaning_of(layer: Any, call: Any) -> tuple[str, dict[str, Attribute]]:
    """Operator and attributes."""
    kind = type(layer).__name__
    rank = len(call.input_tensors[0].shape) if call.input_tensors else 0
    if kind == "Activation":
        op = function_of(layer) or "Identity"
        return op, function_attributes(op, len(call.output_tensors[0].shape))
    if kind == "ReLU":
        if layer.max_value is not None and not layer.negative_slope and not layer.threshold:
            return "Clip", {"min": 0.0, "max": float(layer.max_value)}
        slope = float(layer.negative_slope)
        return ("LeakyRelu", {"alpha": slope}) if slope else ("Relu", {})
    if not isinstance(layer, keras.Layer):
        return _OPERATIONS.get(kind, kind), _operation_attributes(layer, kind, rank)
    op = _LAYERS.get(kind, kind)
    found: dict[str, Attribute] = {}
    if op in {"Conv", "MaxPool", "AveragePool"}:
        found.update({"auto_pad": "SAME_UPPER"} if layer.padding == "same" else {"pads": (0, 0, 0, 0)})
    if op == "Conv":
        found["dilations"] = tuple(map(int, layer.dilation_rate))
    elif op.endswith("Normalization") and hasattr(layer, "epsilon"):  # not by given statistics, or to a length of 1
        found["epsilon"] = float(layer.epsilon)
    elif op == "LeakyRelu":
        found["alpha"] = float(layer.negative_slope)
    elif op == "Elu":
        found["alpha"] = float(layer.alpha)
    elif op in {"Softmax", "Concat"} and isinstance(layer.axis, int):
        found["axis"] = layer.axis % rank
    elif op == "Transpose":
        found["perm"] = (0, *map(int, layer.dims))
    elif op == "Pad" and layer.data_format == "channels_last":
        begins, ends = zip(*layer.padding, strict=True)
        found["pads"] = (0, *map(int, begins), 0, 0, *map(int, ends), 0)
    return op, found


def _operation_attributes(operation: Any, kind: str, rank: int) -> dict[str, Attribute]:
    """Of a function of keras.ops."""
    found: dict[str, Attribute] = {}
    if kind == "Gelu":
        found["approximate"] = "tanh" if operation.approximate else "none"
    elif kind == "LeakyRelu":
        found["alpha"] = float(operation.negative_slope)
    elif kind == "Elu":
        found["alpha"] = float(operation.alpha)
    elif kind in {"Softmax", "Concatenate"} and isinstance(operation.axis, int):
        found["axis"] = operation.axis % rank
    elif kind == "Pad":
        found["mode"] = str(operation.mode)
    elif kind == "Transpose" and operation.axes is not None:
        found["perm"] = tuple(int(axis) for axis in operation.axes)
    return found


def function_of(layer: Any) -> str | None:
    """The operator of a layer's activation; None for none."""
    name = getattr(getattr(layer, "activation", None), "__name__", "linear")
    return None if name == "linear" else FUNCTIONS.get(name, name)


def function_attributes(op: str, rank: int) -> dict[str, Attribute]:
    """Of an activation that is written as a function's name."""
    if op in {"Softmax", "LogSoftmax"}:
        return {"axis": rank - 1}
    values: Mapping[str, dict[str, Attribute]] = {
        "Clip": {"min": 0.0, "max": 6.0},
        "Elu": {"alpha": 1.0},
        "Gelu": {"approximate": "none"},
        "LeakyRelu": {"alpha": 0.2},
        "HardSigmoid": {"alpha": 1 / 6, "beta": 0.5},
    }
    return dict(values.get(op, {}))


def variables_of(layer: Any, op: str) -> dict[str, Any]:
    """The variables that hold a layer's parameters, by role."""
    owner = getattr(layer, "cell", layer)
    found = {
        role: functools.reduce(lambda item, part: getattr(item, part, None), name.split("."), owner)
        for role, name in VARIABLES.get(op, {}).items()
    }
    return {role: variable for role, variable in found.items() if isinstance(variable, keras.Variable)}


def layout_of(layer: Any, op: str, role: str) -> tuple[_Layout, _Layout]:
    """From a layer's numbers to the vocabulary's convention, and back."""
    kind = type(layer).__name__
    if role == "weight" and kind.startswith("DepthwiseConv"):
        return _depthwise(layer)
    if role == "weight" and op in {"Conv", "ConvTranspose"}:
        return (lambda array: np.moveaxis(array, (-1, -2), (0, 1))), (
            lambda array: np.moveaxis(array, (0, 1), (-1, -2))
        )
    if role in {"W", "R"}:
        order = _GATES[op]
        back = tuple(int(place) for place in np.argsort(order))
        return (lambda array: _gates(array.T, order)[None]), (lambda array: _gates(array[0], back).T)
    if op == "Attention":
        return _heads(role, tuple(variables_of(layer, op)[role].shape))
    return (lambda array: array), (lambda array: array)


def _heads(role: str, shape: tuple[int, ...]) -> tuple[_Layout, _Layout]:
    """The axes of heads and of their channels as one, and as two."""
    joined = {"output": (-1, shape[-1])}.get(role, (-1,) if role.endswith("_bias") else (shape[0], -1))
    return (lambda array: array.reshape(joined)), (lambda array: array.reshape(shape))


def _depthwise(layer: Any) -> tuple[_Layout, _Layout]:
    """[*kernel, channels, multiplier] and [channels * multiplier, 1, *kernel]."""
    multiplier = int(layer.depth_multiplier)

    def there(array: Array) -> Array:
        moved = np.moveaxis(array, (-2, -1), (0, 1))
        return moved.reshape((-1, 1, *moved.shape[2:]))

    def back(array: Array) -> Array:
        return np.moveaxis(array.reshape((-1, multiplier, *array.shape[2:])), (0, 1), (-2, -1))

    return there, back


def _gates(array: Array, order: tuple[int, ...]) -> Array:
    parts = np.split(array, len(order))
    return np.concatenate([parts[index] for index in order])

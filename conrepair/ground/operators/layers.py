"""Operators of sums of products, with weights or over windows; and of numbers on a lattice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conrepair.ground.operators.record import BY_CHANNEL, STEP, Array, Attribute, Operator

RECURRENT_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
"""Where a recurrent layer says none."""

_OF_ALL = "each element changes many results"
_IN_STEPS = "a layer of several steps: graphs have their operators"
_WINDOW: Mapping[str, Attribute] = {
    **dict.fromkeys(("kernel_shape", "strides", "pads", "dilations")),
    "auto_pad": "NOTSET",
}
_RECURRENT = {
    "W": "[directions, gates * hidden, input], gates in ONNX's order",
    "R": "[directions, gates * hidden, hidden]",
    "B": "[directions, 2 * gates * hidden]",
    "initial_h": "[directions, batch, hidden]",
    "initial_c": "[directions, batch, hidden]",
}
_RECURRENT_ATTRIBUTES: Mapping[str, Attribute] = {
    "hidden_size": None,
    "direction": "forward",
    "activations": None,
    "batch_first": False,
    "return_sequences": True,
}
_HEADS = "[in, heads * size]"
_BIASES = dict.fromkeys(("query_bias", "key_bias", "value_bias"), "[heads * size]")


def _window(family: str, roles: Mapping[str, str], *, exact: bool = False, **more: Attribute) -> Operator:
    return Operator(BY_CHANNEL, _OF_ALL, roles, {**_WINDOW, **more}, family, exact=exact)


def _recurrent(more: Mapping[str, str], **attributes: Attribute) -> Operator:
    roles = {**_RECURRENT, **more}
    return Operator(_IN_STEPS, _OF_ALL, roles, {**_RECURRENT_ATTRIBUTES, **attributes}, unbounded=_IN_STEPS)


def _product(one: Array, two: Array, bias: Array | float = 0.0, *, transpose_a: bool, transpose_b: bool) -> Array:
    one = np.swapaxes(one, -1, -2) if transpose_a else one
    return np.asarray(one @ (np.swapaxes(two, -1, -2) if transpose_b else two) + bias)


LAYERS: Mapping[str, Operator] = {
    "Conv": _window("convolution", {"weight": "[out, in / group, *kernel]", "bias": "[out]"}, group=1),
    "ConvTranspose": _window(
        "convolution", {"weight": "[in, out / group, *kernel]", "bias": "[out]"}, group=1, output_padding=None
    ),
    "MaxPool": _window("pooling", {}, exact=True, ceil_mode=False),
    "AveragePool": _window("pooling", {}, ceil_mode=False, count_include_pad=False),
    "MatMul": Operator(
        *(_product, _OF_ALL, {"weight": "[..., in, out]", "bias": "[out]", "left": "[..., rows, in]"}),
        {"transpose_a": False, "transpose_b": False},
    ),
    "Einsum": Operator(
        lambda *terms, equation: np.einsum(equation, *terms),
        *(_OF_ALL, {"operand": "a constant term"}, {"equation": None}),
    ),
    "LSTM": _recurrent({"P": "[directions, 3 * hidden]"}, cell_clip=None),
    "GRU": _recurrent({}, linear_before_reset=False),
    "RNN": _recurrent({}),
    "Attention": Operator(
        *(_IN_STEPS, _OF_ALL),
        {
            **dict.fromkeys(("query", "key", "value"), _HEADS),
            "output": "[heads * size, out]",
            **_BIASES,
            "output_bias": "[out]",
        },
        {"num_heads": None, "scale": None, "is_causal": False},
        unbounded=_IN_STEPS,
    ),
    "Resize": Operator(
        *(BY_CHANNEL, _OF_ALL),
        attributes={
            "mode": "nearest",
            "coordinate_transformation_mode": "half_pixel",
            "nearest_mode": "round_prefer_floor",
            "cubic_coeff_a": -0.75,
            "scales": None,
        },
    ),
    **dict.fromkeys(
        ("QuantizeLinear", "DequantizeLinear"),
        Operator(BY_CHANNEL, STEP, {"scale": "scalar or [channels]", "zero_point": "as scale"}, {"axis": 1}),
    ),
}
"""By name."""

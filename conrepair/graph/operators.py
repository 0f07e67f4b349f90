"""The vocabulary of the neutral graph: operators, the roles of their parameters, their attributes and defaults.

Operators are called as in ONNX. Where frameworks write one function in several ways, the graph has one form:

- axes count from 0, in the node's own layout (`Node.channels_last` says where the channels are);
- `pads` are the begins of all spatial axes, then the ends, resolved ("SAME") wherever sizes are known, and
  `auto_pad` is "SAME_UPPER" or "SAME_LOWER" only where they aren't;
- `strides`, `dilations`, `kernel_shape` have an entry for each spatial axis;
- a depthwise convolution is a `Conv` with as many groups as channels;
- a fused activation is a node of its own, behind a tensor that can't be observed;
- ReLU6 is `Clip`, SiLU is `Swish`, a global pooling is a `ReduceMean` or `ReduceMax` with `keepdims`;
- Flatten, ExpandDims, Squeeze and Unsqueeze are `Reshape`; casts between equal types, Dropout in inference and the
  like are `Identity`;
- a fully connected layer is a `MatMul` with the parameter `weight`; its bias is the parameter `bias`;
- what is multiplied from the left with a constant is a `MatMul` with the parameter `left`;
- constant pieces of a `Concat`, and constant terms of an `Einsum`, are the parameters `operand`, `operand_1`, ...:
  in the node's inputs "" stands in their places, in that order;
- an elementwise operator with a constant has that as the parameter `operand`, and the attribute `constant_first`
  when it's the left one (for `Sub`, `Div`, `Pow`: others commute);
- quantization that a format writes as tensors' types (TFLite) is in `Tensor.quantization` and `Parameter.bits`,
  not in nodes; where it's written as nodes (ONNX), constants behind DequantizeLinear are parameters with `bits`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conrepair.graph.layer_graph import Attribute

__all__ = [
    "COMMUTATIVE",
    "ELEMENTWISE_BINARY",
    "FUNCTIONS",
    "NORMALIZATIONS",
    "OPERATORS",
    "POOLINGS",
    "QUANTIZING",
    "RECTIFIERS",
    "RECURRENT_ACTIVATIONS",
    "SIGMOIDS",
    "Operator",
    "is_read",
]

QUANTIZING = frozenset({"QuantizeLinear", "DequantizeLinear"})

RECURRENT_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
"""Where a recurrent layer says none."""


@dataclass(frozen=True)
class Operator:
    """What a node of an operator may have.

    Attributes:
        parameters: Roles, each with the axes of its array in words.
        attributes: With the values they have when nothing is said; None where there is no default.
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


_WINDOW: Mapping[str, Attribute] = {
    "kernel_shape": None,
    "strides": None,
    "pads": None,
    "dilations": None,
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
_OPERAND = Operator({"operand": "broadcast with the tensor"}, {"constant_first": False})
_PLAIN = Operator()
_REDUCTION = Operator(attributes={"axes": None, "keepdims": True})

FUNCTIONS = (
    *("Relu", "HardSwish", "Sigmoid", "Tanh", "Softplus", "Softsign", "Mish", "Erf", "Exp", "Log", "Sqrt", "Neg"),
    *("Reciprocal", "Abs", "Sign", "Floor", "Ceil", "Round", "Sin", "Cos", "Not", "Identity", "Rsqrt"),
    *("Square", "Log1p", "Expm1"),
)
"""Of each number of a tensor, without attributes."""

ELEMENTWISE_BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Mod")
COMMUTATIVE = frozenset({"Add", "Mul", "Min", "Max", "And", "Or", "Xor", "Equal"})

# Families: operators that do the like, so that one can stand in another's place.
RECTIFIERS = frozenset(
    {"Relu", "Clip", "LeakyRelu", "PRelu", "Elu", "Selu", "Celu", "ThresholdedRelu", "Shrink"}
    | {"Gelu", "Swish", "HardSwish", "Mish"}
)
SIGMOIDS = frozenset({"Sigmoid", "HardSigmoid", "Tanh", "Softplus", "Softsign", "Erf", "Exp"})
POOLINGS = frozenset({"MaxPool", "AveragePool", "ReduceMean", "ReduceMax"})
NORMALIZATIONS = frozenset(f"{name}Normalization" for name in ("Batch", "Instance", "Group", "Layer", "RMS"))

OPERATORS: Mapping[str, Operator] = {
    "Conv": Operator({"weight": "[out, in / group, *kernel]", "bias": "[out]"}, {**_WINDOW, "group": 1}),
    "ConvTranspose": Operator(
        {"weight": "[in, out / group, *kernel]", "bias": "[out]"},
        {**_WINDOW, "group": 1, "output_padding": None},
    ),
    "MatMul": Operator(
        {"weight": "[..., in, out]", "bias": "[out]", "left": "[..., rows, in]"},
        {"transpose_a": False, "transpose_b": False},
    ),
    "BatchNormalization": Operator(
        {"scale": "[channels]", "bias": "[channels]", "mean": "[channels]", "variance": "[channels]"},
        {"epsilon": 1e-5, "training_mode": False},
    ),
    "LayerNormalization": Operator(
        {"scale": "[*normalized]", "bias": "[*normalized]"}, {"epsilon": 1e-5, "axes": None}
    ),
    "RMSNormalization": Operator({"scale": "[*normalized]"}, {"epsilon": 1e-5, "axes": None}),
    "GroupNormalization": Operator({"scale": "[channels]", "bias": "[channels]"}, {"epsilon": 1e-5, "groups": None}),
    "InstanceNormalization": Operator({"scale": "[channels]", "bias": "[channels]"}, {"epsilon": 1e-5}),
    "LRN": Operator(attributes={"alpha": 1e-4, "beta": 0.75, "bias": 1.0, "size": None}),
    "LpNormalization": Operator(attributes={"p": 2, "axes": None, "epsilon": 0.0}),
    "MaxPool": Operator(attributes={**_WINDOW, "ceil_mode": False}),
    "AveragePool": Operator(attributes={**_WINDOW, "ceil_mode": False, "count_include_pad": False}),
    "LSTM": Operator({**_RECURRENT, "P": "[directions, 3 * hidden]"}, {**_RECURRENT_ATTRIBUTES, "cell_clip": None}),
    "GRU": Operator(_RECURRENT, {**_RECURRENT_ATTRIBUTES, "linear_before_reset": False}),
    "RNN": Operator(_RECURRENT, _RECURRENT_ATTRIBUTES),
    "Gather": Operator({"table": "as in the file", "indices": "as in the file"}, {"axis": 0}),
    "Attention": Operator(
        {
            "query": "[in, heads * size]",
            "key": "[in, heads * size]",
            "value": "[in, heads * size]",
            "output": "[heads * size, out]",
            "query_bias": "[heads * size]",
            "key_bias": "[heads * size]",
            "value_bias": "[heads * size]",
            "output_bias": "[out]",
        },
        {"num_heads": None, "scale": None, "is_causal": False},
    ),
    "Relu": _PLAIN,
    "Clip": Operator(attributes={"min": None, "max": None}),
    "LeakyRelu": Operator(attributes={"alpha": 0.01}),
    "PRelu": Operator({"slope": "broadcast with the tensor"}),
    "Elu": Operator(attributes={"alpha": 1.0}),
    "Celu": Operator(attributes={"alpha": 1.0}),
    "Selu": Operator(attributes={"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "Gelu": Operator(attributes={"approximate": "none"}),
    "Swish": Operator(attributes={"alpha": 1.0}),
    "HardSigmoid": Operator(attributes={"alpha": 0.2, "beta": 0.5}),
    "Softmax": Operator(attributes={"axis": None}),
    "LogSoftmax": Operator(attributes={"axis": None}),
    "ThresholdedRelu": Operator(attributes={"alpha": 1.0}),
    "Shrink": Operator(attributes={"lambd": 0.5, "bias": 0.0}),
    **dict.fromkeys(FUNCTIONS, _PLAIN),
    **dict.fromkeys(
        (*ELEMENTWISE_BINARY, "And", "Or", "Xor", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
        _OPERAND,
    ),
    **dict.fromkeys(
        ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceSumSquare"), _REDUCTION
    ),
    "ArgMax": Operator(attributes={"axis": None, "keepdims": True}),
    "ArgMin": Operator(attributes={"axis": None, "keepdims": True}),
    "CumSum": Operator(attributes={"axis": None, "exclusive": False, "reverse": False}),
    "Pad": Operator(attributes={"pads": None, "mode": "constant", "value": 0.0}),
    "Reshape": Operator(attributes={"shape": None}),
    "Transpose": Operator(attributes={"perm": None}),
    "Concat": Operator({"operand": "a constant piece"}, {"axis": None}),
    "Stack": Operator(attributes={"axis": None}),
    "Split": Operator(attributes={"axis": None, "sizes": None}),
    "Slice": Operator(attributes={"starts": None, "ends": None, "axes": None, "steps": None}),
    "Tile": Operator(attributes={"repeats": None}),
    "Expand": Operator({"operand": "what is expanded to a computed shape"}, {"shape": None}),
    "Where": Operator({"condition": "as in the file", "x": "as in the file", "y": "as in the file"}),
    "Cast": Operator(attributes={"to": None}),
    "Shape": _PLAIN,
    "Resize": Operator(
        attributes={
            "mode": "nearest",
            "coordinate_transformation_mode": "half_pixel",
            "nearest_mode": "round_prefer_floor",
            "cubic_coeff_a": -0.75,
            "scales": None,
        }
    ),
    "DepthToSpace": Operator(attributes={"blocksize": None, "mode": "DCR"}),
    "SpaceToDepth": Operator(attributes={"blocksize": None}),
    "SpaceToBatch": Operator(attributes={"block": None, "pads": None}),
    "BatchToSpace": Operator(attributes={"block": None, "crops": None}),
    "Einsum": Operator({"operand": "a constant term"}, {"equation": None}),
    "QuantizeLinear": Operator({"scale": "scalar or [channels]", "zero_point": "as scale"}, {"axis": 1}),
    "DequantizeLinear": Operator({"scale": "scalar or [channels]", "zero_point": "as scale"}, {"axis": 1}),
}
"""By name. `strides` of 1, `dilations` of 1 and `pads` of 0 are written out, one per spatial axis; `pads` of `Pad`
has the begins of all axes, then the ends; those of `SpaceToBatch`, and `crops`, of the axes behind the first that
`block` has an entry for. `scales` of `Resize` has an entry for each axis. Operators that aren't
listed keep their native name and whatever attributes their framework gives them."""

_READ_IN_MODE = {
    ("Resize", "nearest_mode"): ("mode", "nearest"),
    ("Resize", "cubic_coeff_a"): ("mode", "cubic"),
    ("Resize", "extrapolation_value"): ("coordinate_transformation_mode", "tf_crop_and_resize"),
    ("Pad", "value"): ("mode", "constant"),
}


def is_read(operator: str, name: str, attributes: Mapping[str, Attribute]) -> bool:
    """Whether an attribute changes what a node computes, given the others.

    Args:
        operator: Of the vocabulary, or native.
        name: Of the attribute.
        attributes: All of the node's.
    """
    chooses, value = _READ_IN_MODE.get((operator, name), ("", None))
    return attributes.get(chooses, value) == value

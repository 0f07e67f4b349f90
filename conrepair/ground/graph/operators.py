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
  not in nodes; where it's written as nodes (ONNX), constants behind DequantizeLinear are parameters with `bits`;
- `strides` of 1, `dilations` of 1 and `pads` of 0 are written out, one per spatial axis; `pads` of `Pad` has the
  begins of all axes, then the ends; those of `SpaceToBatch`, and `crops`, of the axes behind the first that `block`
  has an entry for; `scales` of `Resize` has an entry for each axis.

Operators that `OPERATORS` doesn't have keep their native name and whatever attributes their framework gives them.
"""

from __future__ import annotations

from collections.abc import Mapping

from conrepair.ground.operators.all_operators import OPERATORS
from conrepair.ground.operators.layers import LAYERS, RECURRENT_ACTIVATIONS
from conrepair.ground.operators.record import BY_CHANNEL, Attribute

__all__ = [
    "COMMUTATIVE",
    "ELEMENTWISE_BINARY",
    "FUNCTIONS",
    "LINEAR",
    "LOGICAL",
    "NORMALIZATIONS",
    "OF_CHANNELS",
    "OPERATORS",
    "ORDERED",
    "PRODUCTS",
    "QUANTIZING",
    "RECURRENT_ACTIVATIONS",
    "SOFTMAX",
    "WINDOWS",
    "WITH_OPERAND",
    "family",
    "is_read",
]

FUNCTIONS = tuple(name for name, item in OPERATORS.items() if item.operands == 1 and not item.attributes)
"""Of each number of a tensor, without attributes."""


def family(name: str) -> tuple[str, ...]:
    """The operators of a family, or of the finer ones in it."""
    return tuple(op for op, item in OPERATORS.items() if f"{item.family}.".startswith(f"{name}."))


ELEMENTWISE_BINARY = family("arithmetic")
LINEAR = (*family("arithmetic.sum"), *family("arithmetic.product"))
"""They shift numbers by a constant, or scale them."""

LOGICAL = tuple(name for name, item in OPERATORS.items() if item.logical and item.operands == 2)
"""Of two truth values."""

WINDOWS = frozenset(name for name, item in OPERATORS.items() if "kernel_shape" in item.attributes)
WITH_OPERAND = frozenset(name for name, item in OPERATORS.items() if "constant_first" in item.attributes)
COMMUTATIVE = frozenset(name for name, item in OPERATORS.items() if item.commutes)
ORDERED = WITH_OPERAND - COMMUTATIVE
"""They mind the order of their operands."""

NORMALIZATIONS = frozenset(family("normalization"))
SOFTMAX = frozenset(family("softmax"))
QUANTIZING = frozenset({"QuantizeLinear", "DequantizeLinear"})
_BY_CHANNEL = {name for name, item in OPERATORS.items() if item.value == BY_CHANNEL and not item.unbounded}
OF_CHANNELS = frozenset(_BY_CHANNEL - QUANTIZING)
"""Operators of which the node says where the channels stand, in a way that every format has."""

PRODUCTS = frozenset(name for name, item in LAYERS.items() if item.parameters) - QUANTIZING
"""Operators that add up products."""

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

"""ATen operators in the neutral vocabulary: which argument is which attribute, and how they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conrepair.editors.editor import NotEditableError
from conrepair.graph.layer_graph import Attribute

__all__ = ["ATTRIBUTES", "TARGETS", "arguments_of", "target_of"]

aten = torch.ops.aten


_WINDOW = {"strides": "stride", "pads": "padding", "dilations": "dilation", "group": "groups"}
_EPSILON = {"epsilon": "eps"}
_AXIS = {"axis": "dim"}

ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    **{f"conv{rank}d": _WINDOW for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": _WINDOW for rank in (1, 2)},
    **dict.fromkeys(("batch_norm", "instance_norm", "layer_norm"), _EPSILON),
    "group_norm": {**_EPSILON, "groups": "num_groups"},
    "hardtanh": {"min": "min_val", "max": "max_val"},
    "clamp": {"min": "min", "max": "max"},
    "leaky_relu": {"alpha": "negative_slope"},
    "elu": {"alpha": "alpha"},
    "gelu": {"approximate": "approximate"},
    **dict.fromkeys(("softmax", "_softmax", "log_softmax", "cat"), _AXIS),
    "max_pool2d": {"kernel_shape": "kernel_size", **_WINDOW, "ceil_mode": "ceil_mode"},
    "avg_pool2d": {
        "kernel_shape": "kernel_size",
        "strides": "stride",
        "pads": "padding",
        "ceil_mode": "ceil_mode",
        "count_include_pad": "count_include_pad",
    },
    "permute": {"perm": "dims"},
    "pad": {"mode": "mode", "pads": "pad"},
    "upsample_bilinear2d": {"coordinate_transformation_mode": "align_corners"},
}
"""Arguments by the attribute that they say, by the operator's name without its overload."""

TARGETS: Mapping[str, tuple[Any, tuple[str, ...]]] = {
    "Relu": (aten.relu.default, ()),
    "Clip": (aten.clamp.default, ("min", "max")),
    "LeakyRelu": (aten.leaky_relu.default, ("alpha",)),
    "Elu": (aten.elu.default, ("alpha",)),
    "Selu": (aten.selu.default, ()),
    "Gelu": (aten.gelu.default, ()),
    "Swish": (aten.silu.default, ()),
    "HardSwish": (aten.hardswish.default, ()),
    "HardSigmoid": (aten.hardsigmoid.default, ()),
    "Sigmoid": (aten.sigmoid.default, ()),
    "Tanh": (aten.tanh.default, ()),
    "Softplus": (aten.softplus.default, ()),
    "Softsign": (aten.softsign.default, ()) if hasattr(aten, "softsign") else (None, ()),
    "Mish": (aten.mish.default, ()),
    "Softmax": (aten.softmax.int, ("axis",)),
    "Add": (aten.add.Tensor, ()),
    "Sub": (aten.sub.Tensor, ()),
    "Mul": (aten.mul.Tensor, ()),
    "Div": (aten.div.Tensor, ()),
    "Max": (aten.maximum.default, ()),
    "Min": (aten.minimum.default, ()),
    "Transpose": (aten.permute.default, ("perm",)),
}
"""The ATen operator of one in the vocabulary, and the attributes that it takes behind its operands, in order."""


def target_of(operator: str, attributes: Mapping[str, Attribute]) -> tuple[Any, list[Any]]:
    """An ATen operator and its arguments behind the operands.

    Raises:
        NotEditableError: if there is none.
    """
    target, names = TARGETS.get(operator, (None, ()))
    if target is None:
        raise NotEditableError(f"{operator} has no ATen operator")
    values = [attributes[name] for name in names if name in attributes]
    return target, [list(value) if isinstance(value, tuple) else value for value in values]


def arguments_of(node: torch.fx.Node) -> dict[str, Any]:
    """A node's arguments by name, those with their default values too."""
    schema: Sequence[Any] = node.target._schema.arguments
    found = {argument.name: argument.default_value for argument in schema if argument.has_default_value()}
    found.update({argument.name: value for argument, value in zip(schema, node.args, strict=False)})
    return {**found, **node.kwargs}

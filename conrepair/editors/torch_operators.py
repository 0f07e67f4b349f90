"""ATen operators in the neutral vocabulary: which argument is which parameter or attribute, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from conrepair.editors.editor import NotEditableError
from conrepair.graph.layer_graph import Attribute

__all__ = ["OPERATORS", "TARGETS", "AtenOperator", "arguments_of", "target_of"]

aten = torch.ops.aten


@dataclass(frozen=True)
class AtenOperator:
    """Which arguments of an ATen operator are what.

    Attributes:
        op: In the vocabulary; what it is in one call, networks say.
        parameters: Arguments that may be parameters, by role.
        attributes: Arguments, by the attribute that they say.
        transposed: Roles whose numbers are stored with their two axes exchanged.
    """

    op: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    transposed: frozenset[str] = frozenset()


_CONVOLUTION = {"weight": "weight", "bias": "bias"}
_WINDOW = {"strides": "stride", "pads": "padding", "dilations": "dilation", "group": "groups"}
_NORM = {"scale": "weight", "bias": "bias"}
_STATISTICS = {"mean": "running_mean", "variance": "running_var"}
_GLOBAL_POOLS = {"adaptive_avg_pool2d": "ReduceMean", "adaptive_max_pool2d": "ReduceMax"}

OPERATORS: Mapping[str, AtenOperator] = {
    **{f"conv{rank}d": AtenOperator("Conv", _CONVOLUTION, _WINDOW) for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": AtenOperator("ConvTranspose", _CONVOLUTION, _WINDOW) for rank in (1, 2)},
    "linear": AtenOperator("MatMul", _CONVOLUTION, transposed=frozenset({"weight"})),
    "addmm": AtenOperator("MatMul", {"weight": "mat2", "bias": "self"}),
    "mm": AtenOperator("MatMul", {"weight": "mat2"}),
    "matmul": AtenOperator("MatMul", {"weight": "other"}),
    "batch_norm": AtenOperator("BatchNormalization", {**_NORM, **_STATISTICS}, {"epsilon": "eps"}),
    "instance_norm": AtenOperator("InstanceNormalization", _NORM, {"epsilon": "eps"}),
    "layer_norm": AtenOperator("LayerNormalization", _NORM, {"epsilon": "eps"}),
    "group_norm": AtenOperator("GroupNormalization", _NORM, {"epsilon": "eps", "groups": "num_groups"}),
    "embedding": AtenOperator("Gather", {"table": "weight"}),
    "prelu": AtenOperator("PRelu", {"slope": "weight"}),
    "lstm": AtenOperator("LSTM"),
    "gru": AtenOperator("GRU"),
    "relu": AtenOperator("Relu"),
    "relu6": AtenOperator("Clip"),
    "hardtanh": AtenOperator("Clip", attributes={"min": "min_val", "max": "max_val"}),
    "clamp": AtenOperator("Clip", attributes={"min": "min", "max": "max"}),
    "leaky_relu": AtenOperator("LeakyRelu", attributes={"alpha": "negative_slope"}),
    "elu": AtenOperator("Elu", attributes={"alpha": "alpha"}),
    "selu": AtenOperator("Selu"),
    "gelu": AtenOperator("Gelu", attributes={"approximate": "approximate"}),
    "silu": AtenOperator("Swish"),
    "hardswish": AtenOperator("HardSwish"),
    "hardsigmoid": AtenOperator("HardSigmoid"),
    "sigmoid": AtenOperator("Sigmoid"),
    "tanh": AtenOperator("Tanh"),
    "softplus": AtenOperator("Softplus"),
    "softsign": AtenOperator("Softsign"),
    "mish": AtenOperator("Mish"),
    "softmax": AtenOperator("Softmax", attributes={"axis": "dim"}),
    "_softmax": AtenOperator("Softmax", attributes={"axis": "dim"}),
    "log_softmax": AtenOperator("LogSoftmax", attributes={"axis": "dim"}),
    "max_pool2d": AtenOperator(
        "MaxPool", attributes={"kernel_shape": "kernel_size", **_WINDOW, "ceil_mode": "ceil_mode"}
    ),
    "avg_pool2d": AtenOperator(
        "AveragePool",
        attributes={
            "kernel_shape": "kernel_size",
            "strides": "stride",
            "pads": "padding",
            "ceil_mode": "ceil_mode",
            "count_include_pad": "count_include_pad",
        },
    ),
    **{name: AtenOperator(op) for name, op in _GLOBAL_POOLS.items()},
    "add": AtenOperator("Add"),
    "sub": AtenOperator("Sub"),
    "mul": AtenOperator("Mul"),
    "div": AtenOperator("Div"),
    "pow": AtenOperator("Pow"),
    "maximum": AtenOperator("Max"),
    "minimum": AtenOperator("Min"),
    "cat": AtenOperator("Concat", attributes={"axis": "dim"}),
    "permute": AtenOperator("Transpose", attributes={"perm": "dims"}),
    "flatten": AtenOperator("Reshape"),
    "view": AtenOperator("Reshape"),
    "reshape": AtenOperator("Reshape"),
    "pad": AtenOperator("Pad", attributes={"mode": "mode", "pads": "pad"}),
    "upsample_bilinear2d": AtenOperator("Resize", attributes={"coordinate_transformation_mode": "align_corners"}),
}
"""By the operator's name without its overload."""

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

"""ATen operators in the neutral vocabulary: which argument is which attribute, and how they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.torch.read.arrangement import PAD_MODES as MODES
from conrepair.formats.torch.read.elementwise import BINARY, SETTINGS, UNARY
from conrepair.ground.graph.layer_graph import Attribute

aten = torch.ops.aten


_WINDOW = {"strides": "stride", "pads": "padding", "dilations": "dilation", "group": "groups"}
_EPSILON = {"epsilon": "eps"}
_AXIS = {"axis": "dim"}
PAD_MODES = {mode: name for name, mode in MODES.items()}
_OF_TWO = {*BINARY.values(), "Div"}

ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    **{f"conv{rank}d": _WINDOW for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": _WINDOW for rank in (1, 2)},
    **dict.fromkeys(("batch_norm", "instance_norm", "layer_norm"), _EPSILON),
    "group_norm": {**_EPSILON, "groups": "num_groups"},
    "hardtanh": {"min": "min_val", "max": "max_val"},
    "clamp": {"min": "min", "max": "max"},
    **{name: arguments for name, (_, arguments) in SETTINGS.items()},
    "hardshrink": {"lambd": "lambd"},
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

_NAMES = {op: name for name, op in reversed({**UNARY, **BINARY}.items())} | {
    **{op: name for name, (op, _) in SETTINGS.items()},
    "Clip": "clamp",
    "HardSigmoid": "hardsigmoid",
    "Softplus": "softplus",
    "Softmax": "softmax",
    "Round": "round",
    "Div": "div",
    "Transpose": "permute",
}


def target_of(operator: str, attributes: Mapping[str, Attribute]) -> tuple[Any, list[Any]]:
    """An ATen operator, as networks name it, and its arguments behind the operands.

    Raises:
        NotEditableError: if there is none.
    """
    name = _NAMES.get(operator, "")
    packet = getattr(aten, name, None)
    if packet is None:
        raise NotEditableError(f"{operator} has no ATen operator")
    overloads = ("Tensor", "default") if operator in _OF_TWO else ("default", "int")
    target = next(getattr(packet, overload) for overload in overloads if overload in packet.overloads())
    named = {argument.name for argument in target._schema.arguments if argument.kwarg_only}
    behind = {key: argument for key, argument in ATTRIBUTES.get(name, {}).items() if argument not in named}
    values = [attributes[key] for key in behind if key in attributes]
    return target, [list(value) if isinstance(value, tuple) else value for value in values]


def even_pads(pads: Sequence[Any]) -> list[int]:
    """As windows take them: one number for both ends of an axis.

    Raises:
        NotEditableError: if these differ.
    """
    half = len(pads) // 2
    if pads[:half] != pads[half:]:
        raise NotEditableError("pads at begin and end must be equal")
    return list(pads[:half])


def pads_listed(pads: Sequence[Any]) -> list[int]:
    """As pad takes them: from the last axis to the first that's padded, begin and end together."""
    half = len(pads) // 2
    first = min((axis for axis in range(half) if pads[axis] or pads[half + axis]), default=half - 1)
    return [int(size) for axis in reversed(range(first, half)) for size in (pads[axis], pads[half + axis])]

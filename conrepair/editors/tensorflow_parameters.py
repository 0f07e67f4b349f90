"""Where TensorFlow's operators read the vocabulary's parameters, and in which order of axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conrepair.editors.operation import NotEditableError
from conrepair.graph.layer_graph import Array
from conrepair.networks.parts import depthwise_kernel, in_out_kernel

__all__ = ["native_order", "position_of"]

_ROLES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), ("", "scale", "bias", "mean", "variance")
    ),
    **dict.fromkeys(("Gather", "GatherV2", "ResourceGather"), ("table", "indices")),
    "SelectV2": ("condition", "x", "y"),
}
_KERNELS = ("Conv2D", "Conv3D", "Conv2DBackpropInput", "Conv3DBackpropInputV2")
_WEIGHT = 1


def position_of(item: Any, role: str, constants: Sequence[int]) -> int:
    """Which input of an operator a parameter is.

    Args:
        item: NodeDef.
        role: Of the parameter.
        constants: Positions of the inputs that depend on no input of the network.

    Raises:
        NotEditableError: if it's none.
    """
    roles = _ROLES.get(item.op, ())
    if role in roles:
        return roles.index(role)
    if role == "weight":
        return _WEIGHT
    if role.startswith("input_"):
        return int(role.removeprefix("input_"))
    if role == "operand" and constants:
        return constants[0]
    raise NotEditableError(f"{item.op} has no input for {role}")


def native_order(item: Any, role: str, array: Array, before: Sequence[int]) -> Array:
    """A parameter as an operator has it.

    Args:
        item: NodeDef.
        role: Of the parameter.
        array: In the vocabulary's convention.
        before: The shape that it has in the file.
    """
    if role == "weight" and item.op in _KERNELS:
        return in_out_kernel(array)
    if role == "weight" and item.op == "DepthwiseConv2dNative":
        return depthwise_kernel(array, before[-2])
    if role == "weight" and any(item.attr[name].b for name in ("transpose_b", "adj_y") if name in item.attr):
        return np.swapaxes(array, -1, -2)
    return array.reshape(tuple(before)) if item.op == "BiasAdd" else array

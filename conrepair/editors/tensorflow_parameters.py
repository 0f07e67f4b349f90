"""Where TensorFlow's operators read the vocabulary's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conrepair.editors.operation import NotEditableError

__all__ = ["position_of"]

_ROLES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), ("", "scale", "bias", "mean", "variance")
    ),
    **dict.fromkeys(("Gather", "GatherV2", "ResourceGather"), ("table", "indices")),
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), ("left", "weight")),
    "SelectV2": ("condition", "x", "y"),
}
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
    name, _, number = role.partition("_")  # operand, operand_1, ...: the constant ones in their order
    place = int(number) if number.isdecimal() else 0
    if name == "operand" and place < len(constants):
        return constants[place]
    raise NotEditableError(f"{item.op} has no input for {role}")

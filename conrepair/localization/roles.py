"""What a tensor is in its network: its operator, that one's family, and whether it's all of it."""

from __future__ import annotations

from conrepair.graph.operators import NORMALIZATIONS, POOLINGS, RECTIFIERS, SIGMOIDS

__all__ = ["family"]

_FAMILIES = (
    RECTIFIERS,
    SIGMOIDS,
    POOLINGS,
    NORMALIZATIONS,
    {"Add", "Sub"},
    {"Mul", "Div"},
    {"Reshape", "Transpose", "Identity", "Cast"},
    {"Softmax", "LogSoftmax"},
    {"Conv", "ConvTranspose"},
)


def family(operator: str) -> str:
    """What an operator has in common with those that can stand in its place; its own name where there are none."""
    return next((str(place) for place, family in enumerate(_FAMILIES) if operator in family), operator)

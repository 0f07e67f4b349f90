"""All specifications, by operator."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from conrepair.generate.setting import Setting

__all__ = ["FAMILIES", "Body", "Specification", "operator", "specifications"]

Body = Callable[[Setting], None]

FAMILIES = (
    "along",
    "attention",
    "constants",
    "conversions",
    "control",
    "convolution",
    "elementwise",
    "indexing",
    "layout",
    "logic",
    "losses",
    "movement",
    "norms",
    "pooling",
    "products",
    "quantization",
    "recurrent",
    "reductions",
    "regions",
    "resizing",
    "sampling",
    "signals",
)
"""Modules of this package that have specifications."""


@dataclass(frozen=True)
class Specification:
    """What an operator takes and makes.

    Attributes:
        op: Its name in ONNX's schemas.
        body: Speaks of a setting's inputs, attributes and outputs, in the order in which one depends on others.
        family: The module that has it.
        least_opset: Of the standard's operators, from which on it's so.
    """

    op: str
    body: Body
    family: str
    least_opset: int


_ALL: dict[str, Specification] = {}


def operator(*names: str, least_opset: int = 17) -> Callable[[Body], Body]:
    """Register a specification for operators.

    Args:
        names: In ONNX's schemas.
        least_opset: From which on it's so.
    """

    def registered(body: Body) -> Body:
        family = body.__module__.rpartition(".")[2]
        for name in names:
            _ALL[name] = Specification(name, body, family, least_opset)
        return body

    return registered


@cache
def specifications() -> Mapping[str, Specification]:
    """All of them, by operator, in the order of the alphabet."""
    for family in FAMILIES:
        importlib.import_module(f"{__package__}.{family}")
    return MappingProxyType(dict(sorted(_ALL.items())))

"""All forms, by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from conrepair.generate.weaving import Body

__all__ = ["QUOTA", "Form", "form", "forms"]

QUOTA = 0.05
"""The share of networks that get a form, unless a configuration says another."""

_FAMILIES = ("around", "edges", "sizes", "types")


@dataclass(frozen=True)
class Form:
    """A sort of nonsense.

    Attributes:
        name: As configurations and results have it.
        body: Puts it into a network; NotAllowedError where it doesn't fit.
    """

    name: str
    body: Body


_ALL: dict[str, Form] = {}


def form(name: str) -> Callable[[Body], Body]:
    """Register a form."""

    def registered(body: Body) -> Body:
        _ALL[name] = Form(name, body)
        return body

    return registered


@cache
def forms() -> Mapping[str, Form]:
    """All of them, in the order of the alphabet."""
    for family in _FAMILIES:
        importlib.import_module(f"{__package__}.{family}")
    return MappingProxyType(dict(sorted(_ALL.items())))

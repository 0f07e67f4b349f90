"""All forms, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from conrepair.generate.families import registered
from conrepair.generate.patterns.language import written
from conrepair.generate.weaving import Body

__all__ = ["QUOTA", "Form", "form", "forms", "written_forms"]

QUOTA = 0.05
"""The share of networks that get a form, unless a configuration says another."""


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

    def put(body: Body) -> Body:
        _ALL[name] = Form(name, body)
        return body

    return put


def written_forms(text: str) -> None:
    """Register forms that are equations.

    Args:
        text: See `conrepair.generate.patterns.language`.
    """
    for name, _, body in written(text):
        form(name)(body)


@cache
def forms() -> Mapping[str, Form]:
    """All of them, in the order of the alphabet."""
    return registered(__name__.rpartition(".")[0], _ALL)

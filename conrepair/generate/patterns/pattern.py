"""All patterns, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from conrepair.equations.expression import names_in, parse
from conrepair.generate.families import registered
from conrepair.generate.patterns.parts import FLOAT, width
from conrepair.generate.weaving import Body, Weaver

__all__ = ["Pattern", "equation", "pattern", "patterns"]


@dataclass(frozen=True)
class Pattern:
    """Some nodes that belong together.

    Attributes:
        name: As configurations and results have it.
        aims: What it sets off: the optimizations' own names behind the runtime's ("onnxruntime:MatMulAddFusion").
        body: Puts it into a network; NotAllowedError where it doesn't fit.
    """

    name: str
    aims: tuple[str, ...]
    body: Body


_ALL: dict[str, Pattern] = {}


def pattern(name: str, *aims: str) -> Callable[[Body], Body]:
    """Register a pattern.

    Args:
        name: In a few words.
        aims: What it sets off, as `Pattern.aims`; nothing for units of usual networks.
    """

    def put(body: Body) -> Body:
        _ALL[name] = Pattern(name, aims, body)
        return body

    return put


def _any(w: Weaver) -> str:
    return w.pick_or_new(FLOAT, rank=range(1, 5))


def equation(name: str, text: str, *aims: str, of: Callable[[Weaver], str] = _any) -> None:
    """Register a pattern that is an equation.

    Args:
        name: In a few words.
        text: The equation, of a tensor `x`; what has another name is a constant row.
        aims: What it sets off, as `Pattern.aims`.
        of: Finds or makes `x`.
    """

    @pattern(name, *aims)
    def body(w: Weaver) -> None:
        x = of(w)
        w.write(text, x=x, **{row: w.weight(width(w, x)) for row in names_in(parse(text)) if row != "x"})


@cache
def patterns() -> Mapping[str, Pattern]:
    """All of them, in the order of the alphabet."""
    return registered(__name__.rpartition(".")[0], _ALL)

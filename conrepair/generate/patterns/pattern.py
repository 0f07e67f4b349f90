"""All patterns, by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache

from conrepair.equations.expression import names_in, parse
from conrepair.generate.families import registered
from conrepair.generate.patterns.parts import FLOAT, image, tokens, width
from conrepair.generate.tensors import FLOATS
from conrepair.generate.weaving import Body, Weaver

__all__ = [
    "Pattern",
    "equation",
    "matrix",
    "of_any",
    "of_image",
    "of_matrix",
    "of_real",
    "of_row",
    "of_rows",
    "of_several",
    "of_table",
    "of_tokens",
    "pattern",
    "patterns",
    "reading",
    "rows",
]


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


Reader = Callable[[Weaver, str], None]
"""Puts a pattern into a network that reads a tensor."""


def reading(make: Callable[[Weaver], str]) -> Callable[..., Callable[[Reader], Reader]]:
    """A way to register patterns, as `pattern` is one, whose functions are given a tensor to read.

    Args:
        make: Finds the tensor in the network, or makes it.
    """

    def register(name: str, *aims: str) -> Callable[[Reader], Reader]:
        def put(body: Reader) -> Reader:
            pattern(name, *aims)(lambda w: body(w, make(w)))
            return body

        return put

    return register


def _picked(
    dtypes: Collection[str], rank: int | Collection[int] = range(1, 5), least: int = 1
) -> Callable[[Weaver], str]:
    return lambda w: w.pick_or_new(dtypes, rank=rank, least=least)


real, rows, matrix = _picked(FLOAT), _picked(FLOAT, (2, 3), 2), _picked(FLOAT, 2, 2)
of_image, of_tokens = reading(image), reading(tokens)
of_real, of_rows, of_matrix = reading(real), reading(rows), reading(matrix)
# Of one to four axes with two elements at least; of any float type; both; of two to four axes.
of_row = reading(_picked(FLOAT, least=2))
of_any, of_several = reading(_picked(FLOATS)), reading(_picked(FLOATS, least=2))
of_table = reading(_picked(FLOATS, range(2, 5)))


def equation(name: str, text: str, *aims: str, of: Callable[[Weaver], str] = real) -> None:
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

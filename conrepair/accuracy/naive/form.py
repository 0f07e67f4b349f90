"""A form of an operator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conrepair.accuracy.naive.pieces import PIECES
from conrepair.accuracy.scaled import Array
from conrepair.equations.arrays import value_of
from conrepair.operators.record import Function

__all__ = ["ADDED", "Form", "computing", "forms_of"]

ADDED = "terms added one after another: the error grows with their number"


@dataclass(frozen=True)
class Form:
    """A way to compute operators that loses digits.

    Attributes:
        operators: Which, parted by commas.
        words: The form, and what it loses.
        compute: Of inputs and constants, in their element type; None where factors are rounded to ten bits behind
            the first before the operator is computed.
    """

    operators: str
    words: str
    compute: Callable[..., Any] | None


def computing(text: str, functions: Mapping[str, Function | str] = PIECES, /, **numbers: float) -> Callable[..., Any]:
    """What computes an expression of `x`, or of `x` and `y`, and of numbers by their names, in the type of `x`.

    Args:
        text: The expression.
        functions: What computes its operators, where that isn't what their records say.
        numbers: By its names.
    """

    def compute(*operands: Array) -> Array:
        return value_of(text, {**dict(zip("xy", operands, strict=False)), **numbers}, functions)

    return compute


def forms_of(table: str, functions: Mapping[str, Function | str] = PIECES) -> Iterator[Form]:
    """The forms of a table, each a line `operators: words := expression`, which goes on where one is indented."""
    for row in re.sub(r"\n +", " ", table).strip().splitlines():
        operators, _, rest = row.partition(": ")
        words, _, text = rest.rpartition(" := ")
        yield Form(operators, words, computing(text, functions))

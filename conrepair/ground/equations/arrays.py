"""What an expression computes of arrays, in their own element type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conrepair.ground.equations.expression import Term, computed, names_in, parse
from conrepair.ground.operators.all_operators import OPERATORS
from conrepair.ground.operators.record import Array, Function


def value_of(
    text: str, values: Mapping[str, Any], functions: Mapping[str, Function | str] | None = None, axis: int = -1
) -> Array:
    """Its operators compute as their records do, every intermediate result rounded to the type of the first value.

    Args:
        text: The expression.
        values: Arrays and numbers by its names.
        functions: What operators, or others that it names, compute instead: functions of arrays, or expressions of
            one operand, `a`.
        axis: What reductions and shares are along.
    """
    known, dtype = functions or {}, np.asarray(next(iter(values.values()))).dtype.type

    def call(term: Term, read: list[Any]) -> Any:
        function = known.get(term.operator)
        if isinstance(function, str):
            return value_of(function, {"a": read[0]}, known, axis)
        if function is not None:
            return function(*read)
        said = {name: values.get(str(item), item) for name, item in term.attributes}
        return OPERATORS[term.operator].compute(*read, **{"axis": axis, "axes": axis, **said})

    expression = parse(text)
    given = {name: values[name] for name in names_in(expression)}
    given = {name: value if isinstance(value, np.ndarray) else dtype(value) for name, value in given.items()}
    return np.asarray(computed(expression, given, dtype, call))

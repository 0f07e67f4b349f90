"""All unstable formulas, by operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from conrepair.ground.equations.expression import names_in, parse
from conrepair.ground.equations.operators import EQUATIONS, OTHERS
from conrepair.ground.operators.all_operators import OPERATORS
from conrepair_lab.accuracy.naive.form import ADDED, ONE_BY_ONE, Form, computing
from conrepair_lab.accuracy.naive.functions import FUNCTIONS
from conrepair_lab.accuracy.naive.sums import SUMS

_EQUATIONS = [*EQUATIONS.items(), *((call.partition("(")[0], text) for call, text in OTHERS)]


def _by_equations(known: Mapping[str, list[Form]]) -> Iterator[Form]:
    """Functions that have no form, as their equations say; and rows, their terms added one after another."""
    for name, text in _EQUATIONS:
        said = OPERATORS[name].attributes if name in OPERATORS else {}
        numbers = {key: value for key, value in said.items() if isinstance(value, float)}
        if {"x"} <= {*names_in(parse(text))} <= {"x", *numbers}:
            if "ReduceSum" in text:
                yield Form(name, ADDED, computing(text, ONE_BY_ONE, **numbers))
            elif name not in known:
                yield Form(name, text, computing(text, **numbers))


def _by_operator() -> Mapping[str, list[Form]]:
    found: dict[str, list[Form]] = defaultdict(list)
    for form in (*FUNCTIONS, *SUMS):
        for operator in form.operators.split(", "):
            found[operator].append(form)
    for form in [*_by_equations(found)]:
        found[form.operators].append(form)
    return found


FORMS = _by_operator()
"""Of ONNX's operators, and of cases of `conrepair_lab.accuracy.operators` that are called otherwise."""

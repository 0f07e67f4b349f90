"""Sizes that conditions couple, by z3: within bounds drawn by bins, so that they are diverse."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from conrepair_lab.generate.settings.expressions import APPLY, Expression, Number, Unknown
from conrepair_lab.generate.settings.ports import NotAllowedError
from conrepair_lab.generate.settings.sizes import drawn_size

_EFFORT = 300_000
"""In z3's own units, a quarter of a second: a limit of time would make networks depend on how busy the machine is."""


def solved_by_z3(
    unknowns: list[Unknown], conditions: list[Expression], values: Mapping[Unknown, int], random: Random
) -> dict[Unknown, int]:
    """Values for unknowns that fulfil all conditions.

    Args:
        unknowns: To find.
        conditions: On them.
        values: Of unknowns that are known already.
        random: Bins, and the solver's seed, come from here.

    Raises:
        NotAllowedError: if there are none, or none was found with that effort.
    """
    import z3

    context = z3.Context()  # of its own: what was solved before in this process would have a part in what's found
    solver = z3.SimpleSolver(ctx=context)
    solver.set("rlimit", _EFFORT)
    solver.set("random_seed", random.randrange(2**16))
    terms: dict[Unknown, Any] = {unknown: z3.Int(unknown.name, context) for unknown in unknowns}
    for unknown, term in terms.items():
        solver.add(term >= unknown.low, term <= unknown.high)
    both: dict[Unknown, Any] = {**values, **terms}
    for condition in conditions:
        solver.add(_term(condition, both))
    if solver.check() != z3.sat:
        raise NotAllowedError("no sizes fit")
    model = solver.model()
    bins = [_bin(z3, unknown, term, random) for unknown, term in terms.items()]
    random.shuffle(bins)
    while bins:
        if solver.check(*bins) == z3.sat:
            model = solver.model()
            break
        bins = bins[: len(bins) // 2]
    found = {unknown: model.eval(term, model_completion=True).as_long() for unknown, term in terms.items()}
    return {**values, **found}


def _bin(z3: Any, unknown: Unknown, term: Any, random: Random) -> Any:
    size = drawn_size(random, unknown.low, unknown.high, unknown.high)
    return z3.And(term >= size - size // 4, term <= size + size // 4)


def _term(number: Number, terms: Mapping[Unknown, Any]) -> Any:
    if not isinstance(number, Expression):
        return number
    if isinstance(number, Unknown):
        return terms[number]
    import z3

    left, right = _term(number.left, terms), _term(number.right, terms)
    match number.op:
        case "min":
            return z3.If(left <= right, left, right)
        case "max":
            return z3.If(left <= right, right, left)
        case "or":
            return z3.Or(left, right)
        case "and":
            return z3.And(left, right)
        case "//":
            return (
                left // right if isinstance(left, int) and isinstance(right, int) else _int(z3, left, right) / right
            )
    return APPLY[number.op](left, right)


def _int(z3: Any, number: Any, other: Any) -> Any:
    return z3.IntVal(number, other.ctx) if isinstance(number, int) else number

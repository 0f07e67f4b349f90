"""Checks of the options: what no network can meet is refused before any is made."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterable

from conrepair.ground.runtime.errors import MissingLibraryError, UsageError
from conrepair.ground.runtime.libraries import missing_text
from conrepair.ground.runtime.words import meant
from conrepair_lab.generate.forms.form import forms
from conrepair_lab.generate.growing import fits
from conrepair_lab.generate.patterns.pattern import patterns
from conrepair_lab.generate.settings.ports import MAX_RANK
from conrepair_lab.generate.settings.tensors import BOOL, NUMERIC
from conrepair_lab.generate.specifications.specification import specifications
from conrepair_lab.generate.wishes import Wishes

LEAST_OPSET, MOST_OPSET = 17, 24
"""Of the standard's operators, as the specifications have them."""

_SOLVER = "z3"
_SHARES = ("backward", "woven", "extremes", "symbolic", "deep", "large", "folded")


def check_wishes(wishes: Wishes, learned: Collection[str] | None = ()) -> None:
    """Refuse options that no network can meet.

    Args:
        wishes: What they should be like.
        learned: Operators of instances; None if they aren't known yet.

    Raises:
        UsageError: for an unknown name, with the nearest ones; for bounds that contradict each other; where nothing
            is left.
        MissingLibraryError: if the solver isn't installed.
    """
    if importlib.util.find_spec(_SOLVER) is None:
        raise MissingLibraryError(missing_text(_SOLVER))
    if learned is not None:
        _check_names("operator", (*wishes.operators, *wishes.exclude), {*specifications(), *learned})
    _check_names("element type", wishes.dtypes, (*NUMERIC, *BOOL))
    _check_names("form", wishes.quotas, forms())
    _check_names("pattern", wishes.patterns, patterns())
    shares = {f"form {name}": share for name, share in wishes.quotas.items()}
    shares |= {f"pattern {name}": share for name, share in wishes.patterns.items()}
    shares |= {name: getattr(wishes, name) for name in _SHARES}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise UsageError(f"{name}: {share:g} is no share. Give a number from 0 to 1.")
    if not LEAST_OPSET <= wishes.opset <= MOST_OPSET:
        raise UsageError(f"opset {wishes.opset}: there are specifications of opsets {LEAST_OPSET} to {MOST_OPSET}.")
    fewest, most = wishes.ranks
    if not 0 <= fewest <= most <= MAX_RANK:
        raise UsageError(f"ranks {fewest}-{most}: give the fewest axes and then the most, of 0 to {MAX_RANK}.")
    newer = [name for name in wishes.operators if _least_opset(name) > wishes.opset]
    if newer:
        raise UsageError(f"{_newer(newer, wishes.opset)}. Leave out what isn't there, or take another opset.")
    if not wishes.names and not (learned is None or {*wishes.operators} & {*learned}):
        raise UsageError("no operator is left: all of them are excluded. Name other operators, or exclude fewer.")
    if wishes.names and not any(fits(op, wishes) for op in wishes.names):
        tensors = f"{', '.join(wishes.dtypes) or 'any type'} with {fewest} to {most} axes, of at most {wishes.most}"
        raise UsageError(
            f"no operator is left: none of {_some(wishes.names)} takes tensors of {tensors} elements"
            f"{', and makes one' if wishes.single else ''}. Allow more operators, element types, ranks or elements."
        )


def _check_names(what: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            hint = meant(name, known, f"known: {', '.join(sorted(known))}", most=3)
            raise UsageError(f"there is no {what} {name!r} here{hint}")


def _least_opset(name: str) -> int:
    found = specifications().get(name)
    return 0 if found is None else found.least_opset


def _newer(names: Collection[str], opset: int) -> str:
    least = max(map(_least_opset, names))
    return f"opset {opset} has no {_some(names)}; opset {least} has {'it' if len(names) == 1 else 'all of them'}"


def _some(names: Collection[str]) -> str:
    shown = sorted(names)[:5]
    return ", ".join(shown) + (f" and {len(names) - len(shown)} others" if len(names) > len(shown) else "")

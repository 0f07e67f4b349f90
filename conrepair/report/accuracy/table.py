"""Operators by systems: words of a cell, the table for terminals, and accuracy.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from conrepair.accuracy.measured import Measured
from conrepair.report.encode import encode

__all__ = ["Cause", "Column", "by_place", "causes", "columns", "json_text", "terminal_table", "word"]

_LARGE = 1e4
Column = tuple[str, str]


@dataclass(frozen=True)
class Cause:
    """An unstable form of an operator, and who has it.

    Attributes:
        worst: The largest error that it makes.
        columns: System and element type of all that have it.
    """

    worst: Measured
    columns: tuple[Column, ...]


def columns(results: Sequence[Measured]) -> list[Column]:
    """Systems and element types, in order."""
    return list(dict.fromkeys((one.system, one.dtype) for one in results))


def by_place(results: Sequence[Measured]) -> dict[tuple[str, Column], Measured]:
    """By operator and column."""
    return {(one.operator, (one.system, one.dtype)): one for one in results}


def causes(results: Sequence[Measured]) -> list[Cause]:
    """What is above 16 units, by operator and form, the worst first."""
    groups: dict[tuple[str, str], list[Measured]] = {}
    for one in results:
        if one.faulty:
            groups.setdefault((one.operator, one.form), []).append(one)
    found = [
        Cause(max(group, key=lambda one: one.ulps), tuple((one.system, one.dtype) for one in group))
        for group in groups.values()
    ]
    return sorted(found, key=lambda cause: (-min(cause.worst.relative, 1.0), cause.worst.operator))


def word(one: Measured | None) -> str:
    """An error in units in the last place, in a few letters."""
    if one is None:
        return ""
    if one.refused:
        return "-"
    digits = f"{one.ulps:.1f}" if one.ulps < 100 else f"{one.ulps:.0f}" if one.ulps < _LARGE else f"{one.ulps:.0e}"
    return f"{digits}, inf" if one.missing else digits


def terminal_table(results: Sequence[Measured]) -> Table:
    """Largest errors in units in the last place, those with lost digits in red."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("operator", no_wrap=True)
    for system, dtype in columns(results):
        table.add_column(f"{system}\n{dtype}", justify="right")
    places = by_place(results)
    for operator in dict.fromkeys(one.operator for one in results):
        found = [places.get((operator, column)) for column in columns(results)]
        words = [f"[red]{word(one)}[/]" if one is not None and one.faulty else word(one) for one in found]
        table.add_row(operator, *words)
    return table


def json_text(results: Sequence[Measured]) -> str:
    """accuracy.json: a list of all that was measured."""
    return json.dumps([encode(one) for one in results], indent=1) + "\n"

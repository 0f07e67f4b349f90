"""What a target takes of each operator, as a table."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.shown.progress import ProgressDisplay, output_console, say
from conrepair_lab.campaigns.narrowing import support_of
from conrepair_lab.generate.narrowing.table import Acceptance
from conrepair_lab.generate.wishes import Wishes

HEADER = ("operator", "takes", "element types", "axes", "never taken", "refusals")
"""Names of a row's cells."""


def show_support(name: str, wishes: Wishes, *, as_json: bool, quiet: bool) -> int:
    """Show what a target takes.

    Args:
        name: Of the target.
        wishes: Which operators, of which opset.
        as_json: All of it.
        quiet: No progress.

    Returns:
        The exit code.
    """
    with ProgressDisplay(quiet=quiet) as display:
        found = support_of(name, wishes.names, wishes.opset, display=display)
    if as_json:
        operators = {op: dataclasses.asdict(item) for op, item in found.items()}
        say(json.dumps({"target": name, "opset": wishes.opset, "operators": operators}, indent=2))
    else:
        table = Table(*HEADER, box=None, title=f"{name} takes {_whole(found)}", title_justify="left")
        for op, item in found.items():
            table.add_row(op, *cells_of(item))
        output_console().print(table)
    return int(ExitCode.EQUIVALENT)


def cells_of(item: Acceptance) -> tuple[str, str, str, str, str]:
    """A row without the operator's name."""
    return (
        f"{item.share:.0%} of {item.settings}",
        _listed(item.types),
        _listed(item.ranks),
        "; ".join(_never(item)),
        "; ".join(f"{count} {words}" for words, count in list(item.refusals.items())[:2]),
    )


def _whole(found: Mapping[str, Acceptance]) -> str:
    some = sum(item.taken > 0 for item in found.values())
    every = sum(item.taken == item.settings for item in found.values())
    return f"{some} of {len(found)} operators, {every} of them in all settings"


def _listed(taken: Mapping[str, Sequence[Any]]) -> str:
    return "; ".join(f"{name}: {' '.join(map(str, values)) or 'none'}" for name, values in taken.items())


def _never(item: Acceptance) -> list[str]:
    refused: list[tuple[str, Sequence[Any]]] = [*item.no_types.items(), *item.no_values.items()]
    refused += [(f"axes of {name}", values) for name, values in item.no_ranks.items()]
    return [f"{name}: {', '.join(map(str, values))}" for name, values in refused] if item.taken else ["all"]

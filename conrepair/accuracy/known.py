"""Errors of operators that are known: what `conrepair accuracy` wrote."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from conrepair.accuracy.measured import Measured
from conrepair.frameworks.model import from_json
from conrepair.runtime.errors import UsageError
from conrepair.runtime.json_file import read_json_text, value_of

__all__ = ["known_errors"]

_MOST = 2.0**24  # units in the last place: all digits of float32


def known_errors(path: Path, systems: Collection[str]) -> dict[str, float]:
    """The largest measured errors of operators, of those that don't sum.

    Args:
        path: Of accuracy.json.
        systems: Which, with their settings.

    Returns:
        By operator, units in the last place, the largest of these systems.

    Raises:
        UsageError: if it isn't such a file, or has none of these systems.
    """
    try:
        measured = from_json(tuple[Measured, ...], value_of(read_json_text(path)))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} isn't what `conrepair accuracy -o` writes as accuracy.json: {error}") from error
    there = {item.system for item in measured}
    if not there.intersection(systems):
        raise UsageError(
            f"{path} has no errors of {' or '.join(systems)}, but of {', '.join(sorted(there)) or 'none'}. "
            f"`conrepair accuracy {' '.join(systems)} -o FOLDER` measures them."
        )
    found: dict[str, float] = {}
    for item in measured:
        if item.system in systems and not item.refused and item.of_bound is None:
            name = item.operator.split()[0]
            found[name] = min(max(item.ulps, found.get(name, 0.0)), _MOST)
    return found

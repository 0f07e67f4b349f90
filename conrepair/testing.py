"""For tests of one's own: `assert_equivalent(source, target)`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from conrepair.api import localize
from conrepair.intake.arguments import path
from conrepair.pytest_plugin import REPORTS
from conrepair.runtime.path_text import fitting_name
from conrepair.runtime.words import shortened

__all__ = ["assert_equivalent"]

_LINES, _WIDTH = 10, 200


def assert_equivalent(
    source: Any, target: Any, *, data: Any = None, report: str | Path | None = None, **options: Any
) -> None:
    """Fail where a conversion isn't its source's equal, and name the layer at fault.

    Args:
        source: The model that is right: a path or an object.
        target: Its conversion.
        data: What they're fed; default: inputs are drawn.
        report: Folder that keeps the localization where it fails; default: one below the folder that pytest's
            option --conrepair-reports or the environment variable CONREPAIR_REPORTS names, where there's one.
        **options: Others of `conrepair.localize`.

    Raises:
        AssertionError: with the guilty layer and its fault, in ten lines at most.
        ConrepairError: if one of them can't be loaded or looked into.
    """
    __tracebackhide__ = True
    found = localize(source, target, data=data, **options)
    if found.localization.is_right:
        return
    lines = [shortened(line, _WIDTH) for line in str(found).splitlines()][: _LINES - 1]
    if report is not None:
        report = path("report", report)
    elif reports := os.environ.get(REPORTS):
        report = _free(Path(reports))
    if report is not None:
        lines.append(f"report: {found.save(report)}")
    raise AssertionError("\n".join(lines))


def _free(reports: Path) -> Path:
    """A folder that isn't there yet, named by the test that runs."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]  # "file.py::test[parameters] (call)"
    function, bracket, parameters = test.partition("[")
    text = f"{function.rpartition('::')[2]}{bracket}{parameters}"
    name = "".join(letter if letter.isalnum() else "-" for letter in text).strip("-") or "localization"
    name = fitting_name(name)
    places = (reports / (name if not number else f"{name}-{number}") for number in range(10_000))
    return next(place for place in places if not place.exists())

"""The page below the first screen: a section for each row, and where it all comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conrepair.application.report.encode import encode
from conrepair.application.report.page.files import Link, row_files
from conrepair.application.report.page.inputs import ShownInputs, shown_inputs
from conrepair.application.report.page.layers import layers_data
from conrepair.application.report.page.matrix import PageCell, cell_of
from conrepair.application.report.page.rendering import section_of
from conrepair.application.report.repair.summary import advice_line, conversion_lines
from conrepair.application.report.result import AuditResult, Problem, Row
from conrepair.application.report.row_paths import RowFolders
from conrepair.application.report.summary import row_notes
from conrepair.application.report.told import (
    OF_FILES,
    name_of,
    output_table,
    target_rows,
    tests_of,
)
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.words import shortened

_OPTION = 2000  # letters


@dataclass(frozen=True, kw_only=True)
class Section(PageCell):
    """A row, with what its cell of the matrix says.

    Attributes:
        row: All of it.
        title: Model, conversion and place.
        notes: What a person should know.
        outputs: Titles, and a line for each output.
        problems: What failed, with the tool's last words.
        data: What the script draws; none where layers weren't looked at.
        inputs: Those that differ most.
        advice: Other ways to convert, in a line.
        files: Of the row, beside the page.
        fails: Whether it alone would make the command end with something else than 0.
        beside: Words, anchor and title of the section that shows its layers; none where this one does, or none.
    """

    row: Row
    title: str
    notes: tuple[str, ...] = ()
    outputs: Sequence[tuple[str, ...]] = ()
    problems: tuple[Problem, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    inputs: ShownInputs | None = None
    advice: str = ""
    files: Sequence[Link] = ()
    fails: bool = False
    beside: tuple[str, str, str] | None = None


def sections(result: AuditResult, photos: Sequence[Path] | None) -> list[Section]:
    """One for each row that was compared, localized or repaired, or that failed.

    Args:
        result: Of any verb, or of an audit.
        photos: As of `shown_inputs`.
    """
    folders, rows = RowFolders(result.rows), target_rows(result)
    shown = {row.name: row for row in reversed(rows) if row.localized.steps and row.ran.build is None}
    return [_section(row, result, photos, folders, _same(row, result, shown)) for row in rows]


def _same(row: Row, result: AuditResult, shown: Mapping[str, Row]) -> tuple[str, Row] | None:
    """The row that has the layers of the same file, or of what came of it, and what it is in words."""
    if result.is_on_the_way(row):
        made = (other for other in shown.values() if other.model == row.model and other.kind == "target")
        after = next((other for other in made if other.conversion.startswith(f"{row.conversion}+")), None)
        return None if after is None else ("It's a step on the way to what was repaired:", after)
    if row.localized.steps or (other := shown.get(row.name)) is None:
        return None
    return "The layers of this file are shown where it ran first:", other


def _section(
    row: Row, result: AuditResult, photos: Sequence[Path] | None, folders: RowFolders, same: tuple[str, Row] | None
) -> Section:
    """A row.

    Args:
        row: Of a target.
        result: The run.
        photos: As of `shown_inputs`.
        folders: Of the run.
        same: The row with the layers of the same file, with words; None where there's none other.
    """
    found = row.localized.result
    notes = [*row_notes(row), *tests_of(row), *(found.notes if found is not None else ())]
    if row.mending is not None:
        notes += conversion_lines(row.mending)
    problems = (row.problem, row.localized.problem, row.repaired.problem)
    steps = row.localized.steps
    return Section(
        **vars(cell_of(row, result)),
        row=row,
        title=_title(row, result),
        notes=tuple(dict.fromkeys(notes)),
        outputs=output_table([row], result),
        problems=tuple(dict.fromkeys(problem for problem in problems if problem is not None)),
        data=layers_data(steps[row.localized.explaining], result) if steps else {},
        inputs=shown_inputs(row, result, photos),
        advice=advice_line(row.repaired.advice),
        files=row_files(row, result, folders),
        fails=result.exit_code_of(row) != ExitCode.EQUIVALENT,
        beside=None if same is None else (same[0], section_of(same[1], result), _title(same[1], result)),
    )


def _title(row: Row, result: AuditResult) -> str:
    name = name_of(row, result).replace("+", " > ")
    alone = result.kind in OF_FILES and len(target_rows(result)) == 1
    return f"{name}: outputs, layers, inputs" if alone else f"{name} on {row.ran_by}"


def provenance(result: AuditResult) -> Sequence[tuple[str, str]]:
    """Where it comes from, as names and values."""
    told = [("command", result.command or "called from Python"), ("folder", str(result.folder))]
    told += [("took", f"{result.seconds:.1f} s")]
    options = {name: value for name, value in encode(result.config).items() if value not in (None, [], {})}
    told += [(f"option {name}", shortened(json.dumps(value), _OPTION)) for name, value in options.items()]
    for row in result.rows:
        if row.ran.artifact is not None:
            model = f"{row.ran.artifact.path}, SHA-256 {row.ran.artifact.sha256}"
            told.append((f"{name_of(row, result)} ({row.kind})", model))
    names = {row.model: name_of(row, result) for row in result.rows if not row.conversion}
    told += [(f"data of {names.get(model, model)}", words) for model, words in result.datasets.items()]
    told += [(f"seed of {names.get(model, model)}", str(seed)) for model, seed in result.seeds.items()]
    told += [(f"version of {name}", version) for name, version in result.versions.items()]
    return list(dict.fromkeys(told))

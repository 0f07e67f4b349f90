"""The page below the first screen: the audit's matrix, a section for each row, where it all comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conrepair.application.report.encode import encode
from conrepair.application.report.figures import figures_of
from conrepair.application.report.page.inputs import ShownInputs, shown_inputs
from conrepair.application.report.page.layers import layers_data
from conrepair.application.report.page.rendering import section_of
from conrepair.application.report.readable import Readable
from conrepair.application.report.repair.summary import advice_line, conversion_lines
from conrepair.application.report.result import AuditResult, Problem, Row
from conrepair.application.report.summary import row_notes
from conrepair.application.report.told import (
    is_target,
    name_of,
    output_table,
    state_of_row,
    target_rows,
    tests_of,
    word_of,
)
from conrepair.diagnosis.localization.ranking.suspiciousness import Suspiciousness
from conrepair.ground.runtime.words import shortened

_OPTION = 2000  # letters
_CELLS = 100_000
_FACTS = ("{answers} answers differ", "relative error {error}", "{accuracy} right", "{milliseconds:.3g} ms")


@dataclass(frozen=True, kw_only=True)
class PageCell:
    """A model in one place.

    Attributes:
        anchor: Of its section.
        state: As `state_of`.
        word: The verdict, or what there is in its place.
        facts: Answers, error, accuracy, time; as far as they're known.
    """

    anchor: str
    state: str
    word: str
    facts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PageMatrix:
    """Models by conversion, against the places that they ran in.

    Attributes:
        backends: In the order of the rows.
        lines: Model, conversion, and a cell for each backend; None where it didn't run there.
    """

    backends: tuple[str, ...]
    lines: tuple[tuple[str, str, tuple[PageCell | None, ...]], ...]


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
        suspects: The ranking; None where there's none.
        advice: Other ways to convert, in a line.
    """

    row: Row
    title: str
    notes: tuple[str, ...] = ()
    outputs: Sequence[tuple[str, ...]] = ()
    problems: tuple[Problem, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    inputs: ShownInputs | None = None
    suspects: Suspiciousness | None = None
    advice: str = ""


def sections(result: AuditResult, readable: Readable) -> list[Section]:
    """One for each row that was compared, localized or repaired, or that failed.

    Args:
        result: Of any verb, or of an audit.
        readable: Where photos are looked for.
    """
    return [_section(row, result, readable) for row in target_rows(result)]


def _section(row: Row, result: AuditResult, readable: Readable) -> Section:
    found = row.localized.result
    notes = [*row_notes(row), *tests_of(row), *(found.notes if found is not None else ())]
    if row.mending is not None:
        notes += conversion_lines(row.mending)
    problems = (row.problem, row.localized.problem, row.repaired.problem)
    steps = row.localized.steps
    return Section(
        **vars(_cell(row, result)),
        row=row,
        title=f"{name_of(row, result)} on {row.backend}",
        notes=tuple(dict.fromkeys(notes)),
        outputs=output_table([row], result),
        problems=tuple(dict.fromkeys(problem for problem in problems if problem is not None)),
        data=layers_data(steps[row.localized.explaining], result) if steps else {},
        inputs=shown_inputs(row, result, readable),
        suspects=None if found is None else found.suspiciousness,
        advice=advice_line(row.repaired.advice),
    )


def _cell(row: Row, result: AuditResult) -> PageCell:
    return PageCell(
        anchor=section_of(row, result) if is_target(row) else "",
        state=state_of_row(row),
        word=word_of(row, row.verdict),
        facts=tuple(filter(None, map(figures_of(row.comparison, row.ran).told, _FACTS))),
    )


def matrix_of(result: AuditResult) -> PageMatrix | None:
    """The audit's matrix; None where there's but one target, or so many cells that nobody could read it.

    Args:
        result: Of any verb, or of an audit.
    """
    if len(result.rows) <= 2:
        return None
    backends = tuple(dict.fromkeys(row.backend for row in result.rows))
    names = dict.fromkeys((row.model, row.conversion) for row in result.rows)
    if len(backends) * len(names) > _CELLS:
        return None
    cells = {(row.model, row.conversion, row.backend): _cell(row, result) for row in result.rows}
    lines = tuple(
        (model, conversion, tuple(cells.get((model, conversion, backend)) for backend in backends))
        for model, conversion in names
    )
    return PageMatrix(backends=backends, lines=lines)


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

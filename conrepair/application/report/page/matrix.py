"""The matrix of an audit: models and their conversions against the places that they ran in, by verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from conrepair.application.report.causes import step_of
from conrepair.application.report.figures import figures_of
from conrepair.application.report.page.rendering import section_of
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.told import (
    GIVEN,
    ORIGINAL,
    conversion_of,
    is_mended,
    is_target,
    state_of_row,
    word_of,
)
from conrepair.ground.runtime.words import percent, shortened

_CELLS, _WHY = 100_000, 400
_REPAIRED, _STEP = "repaired", "on the way"
_ORDER = (
    "reference",
    _STEP,
    "equivalent",
    "noise",
    "quantized",
    _REPAIRED,
    "undecided",
    "faulty",
    "undeployable",
    "error",
)


@dataclass(frozen=True, kw_only=True)
class PageCell:
    """A model in one place.

    Attributes:
        anchor: Of its section.
        state: As `state_of`.
        word: The verdict, or what there is in its place.
        facts: Predictions, error, accuracy, time; as far as they're known.
        layers: At fault.
        why: In words, where it isn't right.
    """

    anchor: str
    state: str
    word: str
    facts: tuple[str, ...]
    layers: tuple[str, ...] = ()
    why: str = ""

    @property
    def rank(self) -> int:
        """For sorting by verdict, the worst last."""
        return _ORDER.index(self.word) if self.word in _ORDER else len(_ORDER)


@dataclass(frozen=True, kw_only=True)
class PageMatrix:
    """Models by conversion, against the places that they ran in.

    Attributes:
        backends: In the order of the rows.
        lines: Model, conversion, and a cell for each backend; None where it didn't run there.
        verdicts: Each word of the cells with its state and how often it's there, the worst first.
    """

    backends: tuple[str, ...]
    lines: tuple[tuple[str, str, tuple[PageCell | None, ...]], ...]
    verdicts: tuple[tuple[str, str, int], ...]

    @property
    def of_one(self) -> bool:
        """Whether it's of one model, so that places are lines, with room for reasons."""
        return len(self.lines) == 1 and len(self.backends) > 1

    @property
    def converts(self) -> bool:
        """Whether anything was converted, so that there's a column for it."""
        return any(conversion not in {GIVEN, ORIGINAL} for _, conversion, _ in self.lines)


def cell_of(row: Row, result: AuditResult) -> PageCell:
    """A row in a few words.

    Args:
        row: Of the run.
        result: The run.
    """
    mended, step = is_mended(row), result.is_on_the_way(row)
    found, told = row.localized.result, "unknown" if step else state_of_row(row)
    said = (
        (row.reason.partition(";")[0], "") if row.problem is None else (row.problem.message, row.problem.explanation)
    )
    word = _REPAIRED if mended else _STEP if step else word_of(row, row.verdict)
    return PageCell(
        anchor=section_of(row, result) if is_target(row) else "",
        state=told,
        word=word,
        facts=_facts(row, mended=mended),
        layers=() if found is None else tuple(dict.fromkeys(fault.places[0] for fault in found.faults)),
        why="" if told == "right" or not is_target(row) else shortened(" ".join(filter(None, said)), _WHY),
    )


def _facts(row: Row, *, mended: bool) -> tuple[str, ...]:
    measured, step = figures_of(row.comparison, row.ran), step_of(row)
    error = "" if measured.error is None else f"error {percent(measured.error)}"
    differs = ", ".join(filter(None, (error, measured.told("{answers} predictions differ"))))
    told = [
        f"in {row.ran_by}" if row.ran_by != row.backend else "",
        f"before: {differs}" if mended and differs else differs,
        measured.told("{accuracy} right"),
        measured.told("{milliseconds} ms per sample"),
        f"brought in by {step}" if step else "",
    ]
    return tuple(filter(None, told))


def matrix_of(result: AuditResult) -> PageMatrix | None:
    """The audit's matrix; None where there's but one target, or so many cells that nobody could read it.

    Backends of which no cell says anything are left out.

    Args:
        result: Of any verb, or of an audit.
    """
    if len(result.rows) <= 2:
        return None
    shown = {(row.model, row.conversion, row.backend): cell_of(row, result) for row in result.rows}
    says = {row.backend for row in result.rows if is_target(row) or row.ran.run is not None}
    backends = tuple(backend for backend in dict.fromkeys(row.backend for row in result.rows) if backend in says)
    names = {(row.model, row.conversion): conversion_of(row) for row in result.rows}
    if len(backends) * len(names) > _CELLS:
        return None
    counts = Counter((cell.rank, cell.word, cell.state) for cell in shown.values())
    return PageMatrix(
        backends=backends,
        lines=tuple(
            (name[0], words, tuple(shown.get((*name, backend)) for backend in backends))
            for name, words in names.items()
        ),
        verdicts=tuple((word, state, count) for (_, word, state), count in sorted(counts.items(), reverse=True)),
    )

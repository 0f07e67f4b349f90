"""One screen: every run with its verdict."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from conrepair.application.report.backend_matrix import matrices, matrix_legend, matrix_table
from conrepair.application.report.causes import Cause, causes_of, decision_of
from conrepair.application.report.figures import figures_of, in_a_sentence
from conrepair.application.report.localization.advice import names_of
from conrepair.application.report.repair.summary import advice_line, conversion_lines
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.told import (
    FEW,
    conversion_of,
    failed,
    findings_of,
    held_notes,
    output_table,
    state_of_row,
    target_rows,
    tests_of,
    without_device,
    word_of,
)
from conrepair.ground.runtime.shown.terminal import SafeConsole
from conrepair.ground.runtime.words import counted, quoted
from conrepair.verdicts.evaluate.verdict import Verdict

STYLES = {"right": "green", "warning": "yellow", "wrong": "bold red", "unknown": "dim"}
"""Of consoles, by `conrepair.application.report.told.state_of`."""
_LAST_WORDS_SHOWN = 3
_TEXT_WIDTH = 160
_SHORT = 10  # seconds of which a tenth is told
_MATRICES_SHOWN, _BACKENDS_SHOWN = 3, 8
_CAUSES, _TARGETS = 20, 8
_PASSES, _HELD = ("known: ", "no longer there: "), 12  # lines of a baseline
_ROWS = 500  # that a person may read


def print_summary(result: AuditResult, console: Console, *, files: bool = True) -> None:
    """Show the table and what went wrong; narrower consoles get fewer columns.

    Args:
        result: Of the audit.
        console: Where to.
        files: Whether it has been written, so that its folder is named.
    """
    console.print(_render(result, console.width, files=files))


def summary_text(result: AuditResult) -> str:
    """The same as plain text."""
    stream = io.StringIO()
    console = SafeConsole(file=stream, width=_TEXT_WIDTH, no_color=True, highlight=False)
    console.print(_render(result, _TEXT_WIDTH))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _render(result: AuditResult, width: int, *, files: bool = True) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    several = len({row.backend for row in result.rows}) > 1
    shown_rows = result.rows[:_ROWS]
    told = [_cells(row, on_the_way=result.is_on_the_way(row)) for row in shown_rows]
    if not any(row.conversion for row in shown_rows):
        told = [cells | {"conversion": ""} for cells in told]
    columns = [
        column
        for column in _COLUMNS
        if (width >= column.from_width or (several and column.title == "run by"))
        and any(cells[column.title] for cells in told)
    ]
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.figures else "left",
            no_wrap=bool(column.figures) or column.title == "verdict",
            overflow="fold",
        )
    previous = ""
    for row, cells in zip(shown_rows, told, strict=True):
        shown = cells | ({"model": ""} if row.model == previous else {})
        previous = row.model
        table.add_row(*(shown[column.title] for column in columns))
    more = len(result.rows) - len(shown_rows)
    left = [Text(f"and {more} more, in result.json", style="dim")] if more else []
    return Group(
        *_headline(result), table, *left, *_outputs(result), *_matrices(result), *_remarks(result, files=files)
    )


def held_lines(result: AuditResult) -> list[Text]:
    """How targets stand against a baseline: what's new or worse first."""
    held, _ = held_notes(result)
    held.sort(key=lambda note: note.startswith(_PASSES))
    lines = [
        Text.assemble((word, "green" if note.startswith(_PASSES) else "bold red"), ":", words)
        for note in held[:_HELD]
        for word, _, words in [note.partition(":")]
    ]
    more = len(held) - _HELD
    return [*lines, *([Text(f"and {more} more, in result.json", style="dim")] if more > 0 else [])]


def _headline(result: AuditResult) -> Iterator[Text]:
    """How targets stand against a baseline; what came of two files, or what of an audit may ship, in a sentence."""
    yield from (lines := held_lines(result))
    if lines:
        yield Text("")
    if result.kind == "audit" and len(target_rows(result)) > 1 and (told := decision_of(result)):
        yield Text(told)
        yield Text("")
    row = result.rows[-1] if result.kind == "compare" and result.rows else None
    if row is not None and row.verdict is not None and (told := in_a_sentence(row.comparison)):
        yield Text.assemble(_verdict(row), f". {told}")
        yield Text("")


def _outputs(result: AuditResult) -> list[RenderableType]:
    """Each output in numbers, where they're few: of an audit they're in comparisons.csv and on its page."""
    if result.kind == "audit":
        return []
    head, *lines = output_table(shown := result.rows[:FEW], result) or [()]
    if not 0 < len(lines) <= FEW or len(shown) < len(result.rows):
        return []
    table = Table(*head, box=None, pad_edge=False, header_style="bold", show_edge=False)
    for line in lines:
        table.add_row(*line)
    return [Text(""), table]


def _matrices(result: AuditResult) -> list[RenderableType]:
    """Backends against one another; of many models, the first ones'."""
    every = matrices(result)
    found = [matrix for matrix in every if len(matrix.rows) <= _BACKENDS_SHOWN]
    lines: list[RenderableType] = []
    for matrix in found[:_MATRICES_SHOWN]:
        lines += [Text(""), matrix_table(matrix)]
    lines += [Text(line, style="dim") for line in (matrix_legend(found[:_MATRICES_SHOWN]) if found else [])]
    if left := [matrix.name for matrix in every if matrix not in found[:_MATRICES_SHOWN]]:
        more = ", ".join(left)
        lines.append(Text(f"backends.csv compares every two backends of {more}", style="dim"))
    return lines


_MEASURED = "ms: for each sample, while checking, without a runtime's optimizations; not the time as deployed"
_AS_WRITTEN = " (`conrepair execute FILE --backend onnxruntime` measures that)"


@dataclass(frozen=True)
class _Column:
    """A column of the table, shown on consoles of at least `from_width` columns; of numbers where it has figures."""

    title: str
    from_width: int = 0
    figures: str = ""


_COLUMNS = (
    _Column("model"),
    _Column("conversion"),
    _Column("run by", 110),
    _Column("precision", 140),
    _Column("verdict"),
    _Column("predictions differ", figures="{answers.part}/{answers.of} ({low:.0f}-{high:.0f} %)"),
    _Column("error", figures="{error}"),
    _Column("max abs error", 130, "{max_abs}"),
    _Column("accuracy", 100, "{accuracy.part}/{accuracy.of}"),
    _Column("ms", figures="{milliseconds}"),
)


def _cells(row: Row, *, on_the_way: bool) -> dict[str, RenderableType]:
    measured = figures_of(row.comparison, row.ran)
    figures: dict[str, RenderableType] = {column.title: measured.told(column.figures) for column in _COLUMNS}
    return figures | {
        "model": row.model,
        "conversion": conversion_of(row),
        "run by": row.ran_by,
        "precision": row.ran.intent.text if row.ran.intent else "",
        "verdict": Text(f"{row.verdict}, on the way", style="dim") if on_the_way else _verdict(row),
    }


def _verdict(row: Row) -> Text:
    if row.verdict is not None and row.repaired.is_right:
        return Text(f"{row.verdict.value}, repaired", style="green")
    if row.verdict is None and row.problem is None and row.ran.run is None:
        return Text("not run", style="dim")
    style = "yellow" if row.verdict is None and without_device(row) else STYLES[state_of_row(row)]
    return Text(word_of(row, row.verdict), style=style)


def row_notes(row: Row) -> list[str]:
    """The converter's notes, and what was done to make the outputs comparable; each once."""
    made = row.ran.artifact.provenance if row.ran.artifact else None
    outputs = row.comparison.outputs if row.comparison else ()
    return list(dict.fromkeys([*(made.notes if made else ()), *(note for item in outputs for note in item.notes)]))


def _remarks(result: AuditResult, *, files: bool) -> list[RenderableType]:
    causes = causes_of(result) if result.kind == "audit" else ()
    grouped = {id(row) for cause in causes for target in cause.targets for row in target.rows}
    lines: list[RenderableType] = [Text(""), *_by_cause(causes)]
    lines += [Text.assemble(("note: ", "dim"), note) for note in held_notes(result)[1][:_ROWS]]
    said: set[str] = set()
    for row in result.rows[:_ROWS]:
        label = f"{row.label}: ", "bold"
        told = _of_row(row, said, tests=result.kind == "compare", grouped=id(row) in grouped)
        lines += [Text.assemble(label, words) if isinstance(words, str) else words for words in told]
    for about in dict.fromkeys(result.datasets.values()):
        lines.append(Text(f"inputs: {about}", style="dim"))
    if any(row.ran.times is not None for row in result.rows[:_ROWS]):
        written = any(map(_is_timed_as_written, result.rows[:_ROWS]))
        lines.append(Text(_MEASURED + _AS_WRITTEN * written, style="dim"))
    place = f". Files: {result.folder}" if files else ""
    lines.append(Text(f"{_count(result)} in {result.seconds:.{0 if result.seconds >= _SHORT else 1}f} s{place}"))
    return lines


def _by_cause(causes: Sequence[Cause]) -> Iterator[Text]:
    """What is wrong, and in which targets; those first that aren't repaired."""
    for place, cause in enumerate(causes[:_CAUSES], 1):
        led = f"{cause.step}: " if cause.step else ""
        targets = cause.counted, STYLES[cause.state]
        yield Text.assemble((f"{place}. ", "bold"), targets, ": ", (led, "bold"), f"{cause.words} ({cause.kind})")
        for target in cause.targets[:_TARGETS]:
            left = "" if target.repaired or not cause.repaired else ", not repaired"
            files = f": {', '.join(target.files)}" if target.files else ""
            at = f" at {target.where}" if target.where else ""
            yield Text(f"   {target.name} on {', '.join(target.backends)}{at}{left}{files}")
        if len(cause.targets) > _TARGETS:
            yield Text(f"   and {counted(len(cause.targets) - _TARGETS, 'more target')}", style="dim")
        if cause.advice:
            yield Text(f"   next: {cause.advice}{f' `{cause.command}`' if cause.command else ''}")
    if len(causes) > _CAUSES:
        yield Text(f"and {len(causes) - _CAUSES} more causes, in summary.md and report.html", style="dim")
    if causes:
        yield Text("")


def _of_row(row: Row, said: set[str], *, tests: bool, grouped: bool) -> Iterator[str | Text]:
    """What there is to say of a row, and not yet of another one or by its cause; whole lines as `Text`."""
    yield from row_notes(row)
    if tests:
        yield from tests_of(row)
        if row.verdict is Verdict.FAULTY and row.localized.result is not None:
            found = list(findings_of(row.localized.result))
            yield from (f"{finding.kind}{finding.where}: {finding.words}" for finding in found[:_TARGETS])
            if len(found) > _TARGETS:
                yield f"and {counted(len(found) - _TARGETS, 'more fault')}"
    if row.problem is None and row.verdict in {None, Verdict.EQUIVALENT, Verdict.NOISE}:
        return
    if row.reason not in said:
        yield from () if grouped else (_told(row.reason, row),)
    elif row.problem is not None:
        return  # a model that doesn't load says so once, not for each of its conversions
    said.add(row.reason)
    if row.mending is not None:
        yield from conversion_lines(row.mending)
    repaired = row.repaired
    if repaired.verdict is not None and not repaired.verdict.is_right:
        yield f"the repaired model is {repaired.verdict} on {row.ran_by}: {repaired.reason}"
    if row.problem is not None:
        if row.problem.explanation and not grouped:
            yield Text(f"  {row.problem.explanation}")
        tail = row.problem.last_words.splitlines()[-_LAST_WORDS_SHOWN:]
        yield from (Text(f"  | {line}"[:_TEXT_WIDTH], style="dim") for line in tail)
    if line := advice_line(repaired.advice):
        yield f"advice: {line}"


def _is_timed_as_written(row: Row) -> bool:
    """Whether a time is that of the specification, which ONNX Runtime's optimizations have no part in."""
    artifact = row.ran.artifact
    return (
        row.ran.times is not None
        and row.backend == "libraries"
        and artifact is not None
        and artifact.framework == "onnx"
    )


def _told(text: str, row: Row) -> str:
    """A reason with names that can be read; a tool's own words as they are, they hold paths."""
    found = row.localized.result
    return text if row.problem is not None or found is None else quoted(text, names=names_of(found))


def _count(result: AuditResult) -> str:
    counts = {verdict.value: sum(row.verdict is verdict for row in result.rows) for verdict in Verdict}
    without = sum(row.verdict is None and without_device(row) for row in result.rows)
    counts |= {"error": sum(map(failed, result.rows)), "without a device": without}
    parts = [f"{count} {name}" for name, count in counts.items() if count]
    return ", ".join(parts) or "nothing compared"

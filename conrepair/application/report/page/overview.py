"""The first screen: is it safe to ship, the figures that matter, what is at fault, what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conrepair.application.report.causes import causes_of
from conrepair.application.report.figures import Measure, Share, figures_of
from conrepair.application.report.localization.advice import about_step, names_of, seen
from conrepair.application.report.next_steps import next_steps
from conrepair.application.report.page.guilty import GuiltyLayer, guilty_of
from conrepair.application.report.repair.summary import agreement_words, repair_line, why_left
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.told import (
    failed,
    is_mended,
    is_wrong,
    name_of,
    state_of,
    target_rows,
    without_device,
)
from conrepair.diagnosis.localization.result import Localization
from conrepair.ground.runtime.words import quoted
from conrepair.verdicts.evaluate.verdict import Verdict


@dataclass(frozen=True)
class Figure:
    """A number that matters.

    Attributes:
        value: In a few characters.
        label: What it is.
        note: What it's held against.
    """

    value: str
    label: str
    note: str = ""


_FIGURES = (
    ("{answers}", "answers differ", "{low:.0f}% to {high:.0f}% of all such inputs"),
    ("{error}", "relative error of the output", "rounding explains {floor}"),
    ("{guilty.part}", "places introduce an error", "of {guilty.of} pairs of tensors that were compared"),
    ("{milliseconds:.3g} ms", "for each sample", "median of {times.count} batches"),
    ("{accuracy}", "labelled inputs are answered rightly", ""),
)


@dataclass(frozen=True, kw_only=True)
class RepairBox:
    """What a repair did.

    Attributes:
        words: In a line.
        repaired: Whether nothing is left.
        edits: What was changed.
        before: The target's answers before, in words.
        after: The same now.
        left: Why something is left; none where nothing is.
    """

    words: str
    repaired: bool
    edits: tuple[str, ...]
    before: str
    after: str
    left: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Overview:
    """What a person sees first.

    Attributes:
        state: "right", "warning", "wrong" or "unknown".
        word: The verdict in a word.
        sentence: Whether it's safe to ship.
        figures: Three of them.
        guilty: What is at fault, the guiltiest first.
        more: How many faults aren't listed.
        repairs: What was changed.
        next: What to do: words, and a command or "".
        seen: What was looked at.
    """

    state: str
    word: str
    sentence: str
    figures: tuple[Figure, ...]
    guilty: tuple[GuiltyLayer, ...] = ()
    more: int = 0
    repairs: tuple[RepairBox, ...] = ()
    next: tuple[tuple[str, str], ...]
    seen: str


def overview(result: AuditResult) -> Overview:
    """The first screen of a run.

    Args:
        result: Of any verb, or of an audit.
    """
    targets = target_rows(result)
    rows = targets or list(result.rows)
    if len(targets) != 1:
        return _of_several(rows, result)  # what is at fault stands by its causes, which several targets share
    guilty, more = guilty_of(rows, result)
    return replace(_of_one(rows[0], result), guilty=guilty, more=more, repairs=_repairs(rows))


def _of_one(row: Row, result: AuditResult) -> Overview:
    found, done = row.localized.result, row.repaired.result
    verdict = row.verdict if found is None else found.verdict
    repaired = done is not None and done.mended
    name = name_of(row, result)
    sentence = _sentence(name, row, found, verdict)
    state, word = state_of(verdict), "error" if verdict is None else str(verdict)
    if repaired and done is not None:
        what = f"{Path(done.model.path).name} in its place" if done.model else "it with the recipe beside this page"
        sentence = f"Don't ship {name}; ship {what}: after the repair it computes what its source does."
        state, word = "right", "repaired"
    figures, advice, looked = _figures(row, found), _next(row, result), _seen(row, result)
    return Overview(state=state, word=word, sentence=sentence, figures=figures, next=advice, seen=looked)


def _sentence(name: str, row: Row, found: Localization | None, verdict: Verdict | None) -> str:
    reason = row.reason if found is None else found.reason
    words = quoted(reason, names={} if found is None else names_of(found)).rstrip(".")
    if verdict is None:
        return f"Nothing can be said of {name}: {words}."
    if verdict is Verdict.QUANTIZED:
        return f"Safe to ship if few bits are what was wanted of {name}: {words}."
    if verdict is Verdict.UNDECIDED:
        return f"Not proven right: {words}."
    if verdict.is_right:
        return f"Safe to ship: {name} computes what its source does on what was looked at ({words})."
    return f"Don't ship {name}: {words}."


def _figures(row: Row, found: Localization | None) -> tuple[Figure, ...]:
    measured = figures_of(row.comparison, row.ran)
    if found is not None:
        guilty = sum(layer.guilty for layer in found.layers)
        measured = replace(measured, guilty=Share(guilty, len(found.layers)))
    if found is not None and measured.error is None:
        error, floor = Measure(found.output_error), Measure(found.output_floor)
        measured = replace(measured, error=error, floor=floor)
    return _known(map(measured.told, words) for words in _FIGURES)


def _known(told: Iterable[Iterable[str]]) -> tuple[Figure, ...]:
    """The first three whose values are known, of values with a label and a note."""
    return tuple(figure for figure in (Figure(*words) for words in told) if figure.value)[:3]


def _repairs(rows: Sequence[Row]) -> tuple[RepairBox, ...]:
    return tuple(
        RepairBox(
            words=quoted(repair_line(done)),
            repaired=done.mended,
            edits=tuple(quoted(edit, names=names_of(done.before)) for edit in done.edits),
            before=agreement_words(done.unseen_before),
            after=agreement_words(done.unseen_after),
            left=tuple(why_left(done)),
        )
        for row in rows
        if (done := row.repaired.result) is not None and done.before.faults
    )


def _next(row: Row, result: AuditResult) -> tuple[tuple[str, str], ...]:
    """What to do, with a command where there's one."""
    done = row.repaired.result
    if done is not None and not done.mended:
        return (("Something is left: convert anew by another route, or look at the layers below.", ""),)
    steps = [(step.why.removesuffix("."), step.command) for step in next_steps(result)]
    return tuple((f"{why[:1].upper()}{why[1:]}{':' if command else '.'}", command) for why, command in steps)


def _seen(row: Row, result: AuditResult) -> str:
    found = row.localized.result
    if found is not None:
        return f"Looked at {seen(found, about_step(row, result, row.localized.explaining))}."
    count = 0 if row.ran.run is None else row.ran.run.count
    data = result.datasets.get(row.reference or row.model, "")
    return f"Looked at {count} inputs" + (f" ({data})." if data else ".")


def _of_several(rows: Sequence[Row], result: AuditResult) -> Overview:
    """An audit: what of it may ship."""
    judged = [row for row in rows if row.verdict is not None]
    errors = list(filter(failed, rows))
    mended = list(filter(is_mended, rows))
    wrong = [row for row in judged if is_wrong(row) and not row.repaired.is_right]
    doubtful = [row for row in wrong if row.verdict is Verdict.UNDECIDED]
    state = word = "right"
    instead = f"; {len(mended)} of them after a repair, so ship the repaired files" if mended else ""
    sentence = f"Safe to ship: all {len(judged)} results are those of the original models{instead}."
    if wrong or errors:
        hard = len(wrong) > len(doubtful)
        state, word = ("wrong", "faulty") if hard else ("warning", "undecided") if doubtful else ("unknown", "errors")
        sure = len(wrong) - len(doubtful)
        bad = [f"{sure} of {len(judged)} results are wrong"] if sure else []
        bad += [f"{len(doubtful)} of {len(judged)} results can't be told right from wrong"] if doubtful else []
        bad += [f"{len(errors)} models couldn't be run"] if errors else []
        left = f"; {len(mended)} more are right after a repair" if mended else ""
        sentence = f"Don't ship as it is: {', and '.join(bad)}{left}."
    elif not judged:
        state, word, sentence = "unknown", "not compared", "Nothing was compared."
    elif mended:
        word = "repaired"
    return Overview(
        state=state,
        word=word,
        sentence=sentence,
        figures=_figures_of_several(rows, result, wrong=len(wrong), errors=len(errors)),
        next=_next_of_several(wrong, mended),
        seen="; ".join(dict.fromkeys(about for about in result.datasets.values() if about)),
    )


def _next_of_several(wrong: Sequence[Row], mended: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    """What to do with what isn't right, and with what a repair wrote."""
    words = []
    if wrong:
        words.append(
            "Go through what is wrong, by cause: what isn't repaired stands first, with the step that did it."
        )
    if mended:
        words.append("Compare the repaired files with their original models on inputs of your own, then ship them.")
    return tuple((line, "") for line in words)


def _figures_of_several(rows: Sequence[Row], result: AuditResult, *, wrong: int, errors: int) -> tuple[Figure, ...]:
    counts = Counter(str(row.verdict) for row in rows if row.verdict is not None)
    judged, mended, causes = counts.total(), sum(map(is_mended, rows)), causes_of(result)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    files = len({(target.name, target.backends) for cause in causes for target in cause.targets})
    told = (
        (
            f"{judged - wrong} of {judged}",
            "results are right" + f", {mended} of them after a repair" * bool(mended),
            verdicts,
        ),
        (str(len(causes) or ""), "causes" if len(causes) > 1 else "cause", f"of what is wrong in {files} targets"),
        (str(errors or ""), "without a verdict", "see the errors below"),
        (str(sum(map(without_device, rows)) or ""), "without a device", "not looked at"),
        (f"{result.seconds:.0f} s", "took the audit", f"{len(result.rows)} rows"),
    )
    return _known(told)

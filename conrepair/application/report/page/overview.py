"""The first screen: is it safe to ship, the figures that matter, what is at fault, what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conrepair.application.report.causes import causes_of, decision_of
from conrepair.application.report.figures import figures_of, in_a_sentence
from conrepair.application.report.localization.advice import about_step, names_of, seen
from conrepair.application.report.next_steps import next_steps
from conrepair.application.report.page.files import Link
from conrepair.application.report.page.guilty import GuiltyLayer, guilty_of
from conrepair.application.report.repair.summary import agreement_words, repair_line, verified_on, why_left
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
from conrepair.diagnosis.repairs.outcomes import RECIPE
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.ground.runtime.words import counted, percent, quoted, shortened
from conrepair.verdicts.evaluate.verdict import Verdict

_LAYERS, _NAME = 8, 60


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


@dataclass(frozen=True, kw_only=True)
class RepairBox:
    """What a repair did.

    Attributes:
        words: In a line.
        before: How the converted model agreed with the original, in words.
        after: The same now.
        repaired: Whether nothing is left.
        edits: What was changed.
        rows: What was measured, with its value before and now.
        files: That it made, beside the page.
        left: Why something is left; none where nothing is.
    """

    words: str
    before: str
    after: str
    repaired: bool
    edits: tuple[str, ...]
    rows: tuple[tuple[str, str, str], ...]
    files: tuple[Link, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Overview:
    """What a person sees first.

    Attributes:
        state: "right", "warning", "wrong" or "unknown".
        word: The verdict in a word.
        sentence: Whether it's safe to ship.
        joined: What was measured of one target, in a sentence.
        figures: Of several targets, three of them.
        guilty: What is at fault, the guiltiest first.
        more: How many faults aren't listed.
        repairs: What was changed.
        next: What to do: words, and a command or "".
        seen: What was looked at.
    """

    state: str
    word: str
    sentence: str
    joined: str = ""
    figures: tuple[Figure, ...] = ()
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
        rows = [row for row in rows if not result.is_on_the_way(row)]
        return _of_several(rows, result)  # what is at fault stands by its causes, which several targets share
    guilty, more = guilty_of(rows[0], result)
    return replace(_of_one(rows[0], result), guilty=guilty, more=more, repairs=_repairs(rows, result))


def _of_one(row: Row, result: AuditResult) -> Overview:
    found, done = row.localized.result, row.repaired.result
    verdict = row.verdict if found is None else found.verdict
    repaired = done is not None and done.mended
    name = name_of(row, result)
    sentence = _sentence(name, row, found, verdict)
    state, word = state_of(verdict), "error" if verdict is None else str(verdict)
    if repaired and done is not None:
        what = (
            f"{Path(done.model.path).name} in its place"
            if done.model
            else "it with inputs prepared as `recipe.json` says"
        )
        sentence = f"Don't ship {name}; ship {what}: after the repair its outputs are those of the original."
        state, word = "right", "repaired"
    changed = done is not None and done.before.faults
    joined = (
        "" if changed else _joined(row, found)
    )  # what was before a repair stands in its table, beside what is now
    advice, looked = _next(row, result), _seen(row, result)
    return Overview(state=state, word=word, sentence=sentence, joined=joined, next=advice, seen=looked)


def _sentence(name: str, row: Row, found: Localization | None, verdict: Verdict | None) -> str:
    reason = row.reason if found is None else found.reason
    words = quoted(reason, names={} if found is None else names_of(found)).rstrip(".")
    if verdict is None:
        return f"Nothing can be said of {name}: {words}."
    if verdict is Verdict.QUANTIZED:
        return f"Safe to ship if this quantization of {name} was wanted: {words}."
    if verdict is Verdict.UNDECIDED:
        return f"Can't tell whether {name} is right: {words}."
    if verdict.is_right:
        return f"Safe to ship: the outputs of {name} are those of the original on these inputs ({words})."
    return f"Don't ship {name}: {words}."


def _joined(row: Row, found: Localization | None) -> str:
    """What was measured: predictions, outputs, layers, labels."""
    parts = [in_a_sentence(row.comparison)]
    if not parts[0] and found is not None:
        parts = [f"Outputs: off by {percent(found.output_error)}."]
    if found is not None and found.layers:
        guilty = sum(layer.guilty for layer in found.layers)
        words = f"{guilty} of {len(found.layers)} at fault" if guilty else f"none of {len(found.layers)} at fault"
        parts.append(f"Layers: {words}.")
    if (right := figures_of(None, row.ran).accuracy) is not None:
        parts.append(f"Labels: {right} predictions are right.")
    return " ".join(filter(None, parts))


def _known(told: Iterable[Iterable[str]]) -> tuple[Figure, ...]:
    """The first three whose values are known, of values with a label and a note."""
    return tuple(figure for figure in (Figure(*words) for words in told) if figure.value)[:3]


def _repairs(rows: Sequence[Row], result: AuditResult) -> tuple[RepairBox, ...]:
    return tuple(
        RepairBox(
            words=quoted(repair_line(done)),
            before=agreement_words(done.unseen_before),
            after=agreement_words(done.unseen_after),
            repaired=done.mended,
            edits=tuple(quoted(edit, names=names_of(done.before)) for edit in done.edits),
            rows=tuple(_measured(done, verified_on(done, result))),
            files=tuple(_made(row, done, result.folder)),
            left=tuple(why_left(done)),
        )
        for row in rows
        if (done := row.repaired.result) is not None and done.before.faults
    )


def _measured(done: RepairResult, on: str) -> Iterator[tuple[str, str, str]]:
    """What tells a repaired model from the one that it was, each with its value before and now."""
    sides, found = (done.unseen_before, done.unseen_after), (done.before, done.after)

    def told(words: str, *values: str) -> tuple[str, str, str]:
        return words, values[0], values[1]

    yield told("verdict", *(str(side.verdict) for side in found))
    known = [side for side in sides if side.samples]
    if any(side.top1_differing is not None for side in known):
        differing = [
            "" if side.top1_differing is None else f"{side.top1_differing} of {side.samples}" for side in sides
        ]
        yield told(f"predictions that differ, on {on}", *differing)
    if known:
        yield told("relative error of the outputs on these", *(percent(s.error) if s.samples else "" for s in sides))
    if any(side.right is not None for side in known):
        right = ["" if side.right is None else f"{side.right} of {side.labelled}" for side in sides]
        yield told("right predictions of labelled inputs", *right)
    yield told("layers at fault", *(str(sum(layer.guilty for layer in side.layers)) for side in found))
    names = names_of(done.before)
    now = {layer.source_tensor: layer for layer in done.after.layers}
    guilty = [layer for layer in done.before.layers if layer.guilty]
    for layer in sorted(guilty, key=lambda layer: -layer.introduced_error)[:_LAYERS]:
        after = now.get(layer.source_tensor)
        words = f"error added by `{shortened(names.get(layer.target_layer, layer.target_layer), _NAME)}`"
        yield told(words, percent(layer.introduced_error), "" if after is None else percent(after.introduced_error))


def _made(row: Row, done: RepairResult, folder: Path) -> Iterator[Link]:
    """The files of a repair beside the page."""
    files = [("the repaired model", None if done.model is None else done.model.path), ("the patch", done.patch)]
    if done.recipe is not None and done.patch is not None:
        files.append(("how inputs are to be prepared", str(Path(done.patch).with_name(RECIPE))))
    files += [("converted again", item.model.path) for item in row.repaired.advice if item.model is not None]
    for words, path in files:
        if path is not None and Path(path).is_relative_to(folder):
            yield Link(Path(path).relative_to(folder).as_posix(), words)


def _next(row: Row, result: AuditResult) -> tuple[tuple[str, str], ...]:
    """What to do, with a command where there's one."""
    done = row.repaired.result
    if done is not None and not done.mended:
        return (("Not all is repaired: convert again by another route, or see the layers below.", ""),)
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
        sentence = decision_of(result)
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
        (
            str(len(causes) or ""),
            "causes" if len(causes) > 1 else "cause",
            f"of what is wrong in {counted(files, 'target')}",
        ),
        (str(errors or ""), "without a verdict", "see the errors below"),
        (str(sum(map(without_device, rows)) or ""), "without a device", "not looked at"),
        (f"{result.seconds:.0f} s", "took the audit", counted(len(result.rows), "row")),
    )
    return _known(told)

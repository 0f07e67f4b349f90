"""What a run says of each of its rows, worked out once: consoles, pages and files lay out these values."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from conrepair.application.report.figures import Figures, figures_of
from conrepair.application.report.localization.advice import names_of, names_of_fault
from conrepair.application.report.result import NOT_TAKEN, AuditResult, Row
from conrepair.diagnosis.localization.result import Localization, LocatedFault
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.processes.workers import NO_DEVICE, NO_LIBRARY
from conrepair.ground.runtime.words import number, percent, quoted, shortened
from conrepair.verdicts.evaluate.compare import OutputComparison
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging.floor import By

AT = " at "
"""Between the kind of a fault and its layer."""
GIVEN, ORIGINAL = "given file", "original"
_NAME = 80
_HELD = ("known: ", "new: ", "no longer there: ", "worse: ", "can't tell: ")
OF_FILES = {"compare", "localize", "repair"}
"""Kinds of runs of files that were named, one by one."""


def held_notes(result: AuditResult) -> tuple[list[str], list[str]]:
    """How targets stand against a baseline, with which reports begin; and the other notes."""
    held = [note for note in result.notes if note.startswith(_HELD)]
    return held, [note for note in result.notes if note not in held]


def target_rows(result: AuditResult) -> list[Row]:
    """What was held against something else, or should have been, in the run's order.

    Args:
        result: Of any verb, or of an audit.
    """
    return list(filter(is_target, result.rows))


def is_target(row: Row) -> bool:
    """Whether a row is one of them: a source on another backend is, too."""
    return row.kind != "reference" or row.verdict is not None or row.problem is not None


def name_of(row: Row, result: AuditResult) -> str:
    """What a person calls a row's model: where two files were given, its file.

    Args:
        row: Of the run.
        result: The run.
    """
    if result.kind in OF_FILES and row.ran.artifact is not None:
        return Path(row.ran.artifact.path).name
    return row.label


def called(row: Row) -> str:
    """What a person calls a converted model of an audit; a file that was given, not converted, by its name, too."""
    label, made = row.label.replace("+", " > "), row.ran.artifact
    if row.kind != "target" or row.conversion or made is None:
        return label
    file = Path(made.path).name
    return file if label in file else f"{label} ({file})"


def conversion_of(row: Row) -> str:
    """Where a row's model comes from, as tables say it."""
    return row.conversion.replace("+", " > ") or (GIVEN if row.kind == "target" else ORIGINAL)


def files_of(row: Row, result: AuditResult) -> tuple[str, ...]:
    """The original's path and the target's, where both are files.

    Args:
        row: Of a target.
        result: The run.
    """
    sides = [other for other in result.rows if other.kind == "reference" and other.model == row.reference]
    models = [side.ran.artifact for side in (*sides[:1], row)]
    return tuple(model.path for model in models if model is not None) if len(models) > 1 and all(models) else ()


def word_of(row: Row, verdict: Verdict | None) -> str:
    """A verdict in a word, or what there is in its place.

    Args:
        row: That it's of.
        verdict: The row's, or one by its layers or after its repair.
    """
    if verdict is not None:
        return str(verdict)
    if row.problem is None:
        return "not judged" if is_target(row) else "reference"
    return _ABSENT.get(row.problem.kind, "error") if without_device(row) else "error"


_ABSENT = {NO_DEVICE: "no device", NO_LIBRARY: "not installed", NOT_TAKEN: "not run"}


def without_device(row: Row) -> bool:
    """Whether what it was to run on isn't there, or doesn't take it, which is no failure."""
    return row.problem is not None and (
        row.problem.kind == NO_DEVICE
        or (row.problem.kind in _ABSENT and row.problem.exit_code == ExitCode.EQUIVALENT)
    )


def failed(row: Row) -> bool:
    """Whether nothing can be said of it, and not for want of a device."""
    return row.verdict is None and row.problem is not None and not without_device(row)


def state_of(verdict: Verdict | None) -> str:
    """How a verdict is shown: "right", "warning", "wrong" or "unknown"."""
    if verdict is None:
        return "unknown"
    if verdict in {Verdict.QUANTIZED, Verdict.UNDECIDED}:
        return "warning"
    return "right" if verdict.is_right else "wrong"


def is_wrong(row: Row) -> bool:
    """Whether a row was judged, and isn't right as it came, whatever a repair made of it."""
    return row.verdict is not None and not row.verdict.is_right


def is_mended(row: Row) -> bool:
    """Whether a row wasn't right as it came, and what a repair wrote is right in its place."""
    return is_wrong(row) and row.repaired.is_right


def state_of_row(row: Row) -> str:
    """How a row is shown: one of which nothing can be said as what's wrong, one that a repair made right as right."""
    return "right" if is_mended(row) else "wrong" if failed(row) else state_of(row.verdict)


class Outcome(enum.StrEnum):
    """What a test's report calls it; a row that alone would make the command end with 1 has failed."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A fault, or faults that one rule stands for.

    Attributes:
        kind: Of fault; of a target without one, its verdict.
        words: What is wrong, in a sentence.
        layers: Of the target, whole names, the guiltiest first; none where no layer can be accused.
        fault: With what was measured there; None for a rule, and where there's only a verdict.
        origin: The original's name of the first of the layers, by which baselines call it; "" where there's none.
        known: Why it's accepted, where a baseline lists it.
    """

    kind: str
    words: str
    layers: tuple[str, ...] = ()
    fault: LocatedFault | None = None
    origin: str = ""
    known: str = ""

    @property
    def where(self) -> str:
        """The layer as baselines call it, with the converted model's name of it; "" where there's none."""
        return f" at {both_names(self.layers[0], self.origin)}" if self.layers else ""


@dataclass(frozen=True, kw_only=True)
class Told:
    """A target.

    Attributes:
        row: All of it.
        name: Of the model, with its conversion.
        source: Name of the model that it's held against.
        outcome: Whether it passed.
        verdict: By its layers where these were asked about.
        word: The verdict, or what there is in its place.
        reason: In words.
        found: By layers; None where these weren't looked at.
        findings: What is at fault.
        figures: What was measured.
    """

    row: Row
    name: str
    source: str
    outcome: Outcome
    verdict: Verdict | None
    word: str
    reason: str
    found: Localization | None
    findings: tuple[Finding, ...]
    figures: Figures

    @property
    def judgement(self) -> Finding:
        """The verdict with its reason, where a fault would be told."""
        return Finding(kind=self.word, words=self.reason)

    @property
    def accused(self) -> tuple[Finding, ...]:
        """What is at fault; of a target that failed without any, its verdict."""
        return self.findings or ((self.judgement,) if self.outcome is Outcome.FAILED else ())


def told_of(result: AuditResult) -> list[Told]:
    """All targets, in their order.

    Args:
        result: Of any verb, or of an audit.
    """
    names = {row.label: name_of(row, result) for row in reversed(result.rows)}
    return [told_row(row, result, names) for row in target_rows(result)]


def told_row(row: Row, result: AuditResult, known: Mapping[str, str], repaired: Localization | None = None) -> Told:
    """A row.

    Args:
        row: Of a target.
        result: The run that it's of.
        known: What a person calls models, by their labels.
        repaired: By layers as they are after a repair, where it's told so; what was measured before isn't, then.
    """
    found, verdict, reason = repaired or row.localized.result, row.verdict, row.reason
    if found is not None and (repaired is not None or result.kind in {"localize", "repair"}):
        verdict, reason = found.verdict, found.reason
    outcome = Outcome.PASSED if result.exit_code_of(row) == ExitCode.EQUIVALENT else Outcome.FAILED
    if verdict is None:
        outcome = Outcome.SKIPPED if row.problem is None or without_device(row) else Outcome.ERROR
    return Told(
        row=row,
        name=name_of(row, result),
        source=known.get(row.reference or row.model, row.reference or row.model),
        outcome=outcome,
        verdict=verdict,
        word=word_of(row, verdict),
        reason=quoted(reason, names={} if found is None else names_of(found)),
        found=found,
        findings=() if found is None else tuple(_marked(found, row, result)),
        figures=figures_of(row.comparison, row.ran) if repaired is None else Figures(),
    )


def place_of(fault: LocatedFault) -> tuple[str, str]:
    """What a baseline calls a fault by: its kind, and the original's name of the layer, which conversions share."""
    return str(fault.kind), (fault.source_layers or fault.target_layers or (fault.target_tensor,))[0]


def both_names(layer: str, origin: str) -> str:
    """A layer by its name in the original model, and by that in the converted one where that's another."""
    own = shortened(layer, _NAME)
    first = shortened(origin, _NAME) or own
    return first if first == own else f"{first} ({own} in the converted model)"


def known_fault(row: Row, place: tuple[str, str]) -> str:
    """What a known fault of a target is called in `AuditResult.known`, where another one makes the target fail."""
    return f"{row.where}: {AT.join(place)}"


def _marked(found: Localization, row: Row, result: AuditResult) -> list[Finding]:
    """What is at fault: what a baseline knows behind what is new."""
    known: dict[tuple[str, str], str] = {}
    for fault in found.faults:
        reason = result.known.get(row.where) or result.known.get(known_fault(row, place_of(fault)), "")
        known |= dict.fromkeys([(str(fault.kind), layer) for layer in fault.places], reason) if reason else {}
    marked = []
    for finding in findings_of(found):
        reasons = [known.get((finding.kind, layer), "") for layer in finding.layers]
        if any(reasons) and not all(reasons):  # one rule for faults of which some are known
            of_rule = [fault for fault in found.faults if fault.places[0] in finding.layers]
            marked += [
                replace(item, known=known.get((item.kind, item.layers[0]), "")) for item in map(_alone, of_rule)
            ]
        else:
            marked.append(replace(finding, known=reasons[0]) if any(reasons) else finding)
    return sorted(marked, key=lambda finding: bool(finding.known))


def findings_of(found: Localization) -> Iterator[Finding]:
    """Rules, then the faults that are alone.

    Args:
        found: In a target.
    """
    origins = {layer: place_of(fault)[1] for fault in found.faults for layer in fault.places}
    for rule in found.rules:
        origin = origins.get(rule.layers[0], "") if rule.layers else ""
        yield Finding(kind=str(rule.kind), words=quoted(rule.text), layers=rule.layers, origin=origin)
    yield from map(_alone, found.alone)


def _alone(fault: LocatedFault) -> Finding:
    words = quoted(fault.words, names=names_of_fault(fault))
    origin = place_of(fault)[1]
    return Finding(kind=str(fault.kind), words=words, layers=fault.places, fault=fault, origin=origin)


# Each output of each target in numbers: the same columns on consoles, in Markdown and on pages.


_RIGHT = {Verdict.EQUIVALENT, Verdict.NOISE}
FEW = 20
"""Lines that are shown beside other tables; comparisons.csv has all."""


def output_table(rows: Iterable[Row], result: AuditResult) -> list[tuple[str, ...]]:
    """Titles, and a line for each output that was compared; columns in which nothing stands are left out.

    Args:
        rows: Of the run.
        result: The run.
    """
    compared = [(row, output) for row in rows if row.comparison is not None for output in row.comparison.outputs]
    own = dict.fromkeys(name for _, output in compared for name in output.metrics)
    lines = [
        {"model": name_of(row, result), "run by": row.ran_by}
        | _figures(output, result.top_k)
        | {name: number(output.metrics[name]) if name in output.metrics else "" for name in own}
        for row, output in compared
    ]
    titles = [title for title in (lines[0] if lines else ()) if any(line[title] for line in lines)]
    single = [title for title in ("model", "run by") if len({line[title] for line in lines}) == 1]
    titles = [title for title in titles if title not in single]
    return [tuple(titles), *(tuple(line[title] for title in titles) for line in lines)] if lines else []


def _figures(output: OutputComparison, top_k: int) -> dict[str, str]:
    error, answers = output.error, output.answers
    return {
        "output": output.pair.reference,
        "verdict": output.verdict.value,
        "relative error": percent(error.relative_l2),
        "max abs error": number(error.max_abs),
        "accepted by": "" if output.explained is None or output.explained.by is By.NOTHING else str(output.explained),
        "SQNR dB": f"{error.sqnr_db:.1f}",
        "cosine": f"{error.cosine:.6f}",
        "KL divergence": "" if answers is None else number(answers.kl_divergence),
        f"top-{top_k} agree": "" if answers is None else percent(answers.overlap),
    }


def tests_of(row: Row) -> list[str]:
    """Tolerances for tests of a user's own, in words; none where the target isn't right."""
    outputs = row.comparison.outputs if row.comparison is not None and row.verdict in _RIGHT else ()
    return [
        f"{f'output {output.pair.reference}: ' if len(outputs) > 1 else ''}{output.tests}"
        for output in outputs
        if output.tests is not None
    ]

"""A whole run judged again, its outputs by the function that judged them, and what is missing of one."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conrepair.application.report.again.layers import layers_again
from conrepair.application.report.page.inputs import named_folders, shown_inputs
from conrepair.application.report.result import AuditResult, LocalizedStep, Row
from conrepair.application.report.told import target_rows
from conrepair.ground.metrics.tensors import TensorError
from conrepair.ground.runtime.files.outputs import lies_in
from conrepair.ground.runtime.words import number, percent
from conrepair.verdicts.evaluate.compare import Comparison, OutputComparison
from conrepair.verdicts.evaluate.own_tests import for_tests
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict, judge, rounding_could_excuse
from conrepair.verdicts.judging.floor import HALF_PRECISIONS, By, Floor

_BY_OTHER_MEANS = "its verdict rests on more than the saved figures"
_ELEMENTS = "the difference of each element isn't saved: use compare --rtol and --atol"


def comparison_again(comparison: Comparison, old: Tolerance, new: Tolerance) -> tuple[Comparison, str]:
    """Judge by other tolerances.

    A verdict is judged again where the function that judges gives it of what was saved, so that nothing else (another
    type of output, another order, random answers) is behind it. Elements aren't saved: whether all are within other
    tolerances is told where the largest difference, or the count of those that weren't, proves it.

    Args:
        comparison: As it was saved.
        old: By which it was judged.
        new: By which it's to be.

    Returns:
        The comparison, and why it stayed as it was; "" where it was judged.
    """
    if old == new:
        return comparison, ""
    if comparison.unpaired or not comparison.outputs or old.by_output:
        return comparison, _BY_OTHER_MEANS
    worst = comparison.worst
    if worst is None or worst.verdict is not comparison.verdict or not comparison.reason.endswith(worst.reason):
        return comparison, _BY_OTHER_MEANS
    outputs = []
    for output in comparison.outputs:
        again, why = _output(output, old, new)
        if why:
            return comparison, why
        outputs.append(again)
    judged = replace(comparison, outputs=tuple(outputs))
    worst = judged.worst or worst
    reason = worst.reason if len(outputs) == 1 else f"output {worst.pair.reference}: {worst.reason}"
    return replace(judged, verdict=worst.verdict, reason=reason), ""


def _output(output: OutputComparison, old: Tolerance, new: Tolerance) -> tuple[OutputComparison, str]:
    top1 = None if output.answers is None else output.answers.top1_differs / max(output.answers.samples, 1)
    saved = output.verdict, output.reason
    for precision, quantized in itertools.product(("float32", *sorted(HALF_PRECISIONS)), (False, True)):
        floor = Floor(output.floor, By.SECOND if output.floor_measured else By.OPERATORS, precision)
        found = judge(output.error, floor, old, quantized=quantized, top1_difference=top1)
        if found == saved or (output.hidden and found[0] is saved[0] and saved[1].startswith(f"{found[1]}; ")):
            break
    else:
        return output, _BY_OTHER_MEANS
    within = _within(output.error, old, new)
    if within is None:
        return output, _ELEMENTS
    error, counted = output.error, within == output.error.within_tolerance
    if not counted:
        error = replace(error, exceeding=0 if within else 1)
    verdict, reason = judge(error, floor, new, quantized=quantized, top1_difference=top1)
    if output.hidden and verdict is not Verdict.FAULTY and not (within and new.relative_l2 is None):
        return output, _BY_OTHER_MEANS  # what slices may be off by isn't saved
    if verdict is Verdict.FAULTY and not counted:
        worst = f"elements are beyond tolerance, the worst by {number(error.max_abs)}"
        reason = f"outputs are off by {percent(error.relative_l2)}; {worst}"
    unmeasured = not output.floor_measured and rounding_could_excuse(error, floor, new, exact=False)
    if verdict is Verdict.FAULTY and output.verdict.is_right and unmeasured:
        verdict, reason = Verdict.UNDECIDED, f"{reason}; the rounding error wasn't measured"
    right = verdict in {Verdict.EQUIVALENT, Verdict.NOISE}
    tests = for_tests(error, floor.relative_l2, new.noise_margin) if right else None
    return replace(output, error=error, verdict=verdict, reason=reason, tests=tests), ""


def _within(error: TensorError, old: Tolerance, new: Tolerance) -> bool | None:
    """Whether all elements are within other tolerances; None where what was saved doesn't say."""
    if error.mismatched:
        return False
    if (old.rtol, old.atol) == (new.rtol, new.atol):
        return error.within_tolerance
    looser, tighter = new.rtol >= old.rtol and new.atol >= old.atol, new.rtol <= old.rtol and new.atol <= old.atol
    if error.max_abs <= new.atol or (looser and error.within_tolerance):
        return True
    if error.max_abs > new.atol + new.rtol * error.max_reference or (tighter and not error.within_tolerance):
        return False
    return None


_QUANTIZED = "it's quantized, and what that allows isn't saved"


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Others than a run was judged by; None: as it was.

    Attributes:
        margin: How many times the rounding error an error may be, of a layer and of an output.
        rtol: Relative, of each element of an output.
        atol: Absolute, of the same.
        relative_l2: Of an output as a whole.
    """

    margin: float | None = None
    rtol: float | None = None
    atol: float | None = None
    relative_l2: float | None = None

    @property
    def given(self) -> dict[str, float]:
        """Those that somebody chose."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}

    def tolerance(self, old: Tolerance) -> Tolerance:
        """For outputs: elements decide alone where somebody says what they may differ by, as in `compare`."""
        changes: dict[str, Any] = {name: value for name, value in self.given.items() if name != "margin"}
        if ("rtol" in changes or "atol" in changes) and "relative_l2" not in changes:
            changes["relative_l2"] = None
        return replace(old, **changes, noise_margin=old.noise_margin if self.margin is None else self.margin)


def judged_again(result: AuditResult, thresholds: Thresholds) -> AuditResult:
    """Judge by other thresholds what can be judged without running a model; what can't is noted.

    Args:
        result: As it was saved.
        thresholds: By which it's to be judged.
    """
    if not thresholds.given:
        return result
    old = _tolerance(result.config.get("tolerance"))
    few_bits = {row.model for row in result.rows if row.kind == "reference" and _few_bits(row)}
    rows, notes = [], []
    for row in result.rows:
        again, why = _row(row, old, thresholds, quantized=_few_bits(row) or row.reference in few_bits)
        rows.append(again)
        notes += [f"{row.label} on {row.ran_by} wasn't judged by these: {words}" for words in why]
    pairs = tuple(comparison_again(pair, old, thresholds.tolerance(old))[0] for pair in result.pairs)
    told = ", ".join(f"{name} {value:g}" for name, value in thresholds.given.items())
    notes = [*result.notes, f"judged with {told}", *dict.fromkeys(notes)]
    return replace(result, rows=tuple(rows), pairs=pairs, notes=tuple(notes))


def _tolerance(saved: object) -> Tolerance:
    known = {item.name for item in dataclasses.fields(Tolerance)}
    given = saved if isinstance(saved, Mapping) else {}
    return Tolerance(**{name: value for name, value in given.items() if name in known})


def _few_bits(row: Row) -> bool:
    return row.ran.run is not None and row.ran.run.budgeted


def _row(row: Row, old: Tolerance, thresholds: Thresholds, *, quantized: bool) -> tuple[Row, list[str]]:
    why = []
    if row.comparison is not None and quantized:
        why.append(_QUANTIZED)
    elif row.comparison is not None and (row.verdict, row.reason) == (row.comparison.verdict, row.comparison.reason):
        comparison, words = comparison_again(row.comparison, old, thresholds.tolerance(old))
        row = replace(row, comparison=comparison, verdict=comparison.verdict, reason=comparison.reason)
        why += [words] if words else []
    elif row.comparison is not None:
        why.append("its verdict rests on more than its outputs")
    if thresholds.margin is None:
        return row, why
    steps = []
    for step in row.localized.steps:
        found, unjudged = layers_again(step.localization, thresholds.margin)
        steps.append(LocalizedStep(step.compared, found))
        why += unjudged
    row = replace(row, localized=replace(row.localized, steps=tuple(steps)))
    if (done := row.repaired.result) is not None:
        before, after = (layers_again(found, thresholds.margin)[0] for found in (done.before, done.after))
        row = replace(row, repaired=replace(row.repaired, result=replace(done, before=before, after=after)))
    return row, why


def missing_of(result: AuditResult, photos: Sequence[Path] | None) -> Iterator[str]:
    """What a report can't show, since it wasn't done, isn't there any more or isn't read; each in a sentence.

    Args:
        result: As it was read.
        photos: Folders that are looked into for photos; None: those of its configuration.
    """
    targets = target_rows(result)
    if targets and not any(row.localized.steps for row in targets):
        yield "layers weren't compared in this run: `conrepair localize` names the faulty ones"
    for row in targets:
        done = row.repaired.result
        if done is not None and done.model is not None and not lies_in(result.folder, done.model.path):
            yield f"{done.model.path}, the repaired model, isn't in the run's folder any more"
        shown = shown_inputs(row, result, photos)
        if shown is not None and shown.missing:
            yield f"the photos of {shown.missing} inputs are gone"
        elif row.inputs and _has_photos(row, result) and photos is not None and not photos:
            yield "photos aren't shown: say where they are (--data FOLDER)"


def _has_photos(row: Row, result: AuditResult) -> bool:
    return result.recipes.get(row.reference) is not None and bool(named_folders(result.config))

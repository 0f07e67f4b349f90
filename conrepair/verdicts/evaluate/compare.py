"""Compare two runs, their outputs' tensors, predictions and times, and judge."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.tensor_spec import FEW_DIGITS
from conrepair.ground.metrics.probabilities import kl_divergence
from conrepair.ground.metrics.ranks import kendall_tau_union, overlap, rank_biased_overlap, top_k
from conrepair.ground.metrics.spread import HARDLY_ANY, spread_between_samples
from conrepair.ground.metrics.statistics import TimeComparison, compare_times, wilson_interval
from conrepair.ground.metrics.tensors import TensorError, compare_tensors, relative_error, row_chunks
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.evaluate.answers import holds_probabilities, is_scores, probabilities, right_answers
from conrepair.verdicts.evaluate.draws import judge_draws
from conrepair.verdicts.evaluate.evidence import Evidence, beside_exact, by_arithmetic, explained_by, fits_of
from conrepair.verdicts.evaluate.face import changed_face
from conrepair.verdicts.evaluate.own_metrics import Metric, measured
from conrepair.verdicts.evaluate.own_tests import ForTests, for_tests
from conrepair.verdicts.evaluate.pairing import OutputPair, fit, pair_outputs
from conrepair.verdicts.evaluate.row_sets import RowSet, in_rows
from conrepair.verdicts.evaluate.run import Run
from conrepair.verdicts.evaluate.slices import coarse_slices, wrong_slices
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Integers, Verdict, judge, of_types, rounding_could_excuse
from conrepair.verdicts.evaluate.whole_numbers import are_texts, are_whole, differing_share, judge_whole
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.judging.arithmetic import FLOAT32, tried
from conrepair.verdicts.judging.floor import HALF_PRECISIONS, By, Explained, Floor, Rounding, coarser
from conrepair.verdicts.judging.recognition import Fit, stored_in

Array = npt.NDArray[Any]

_RIGHT = {Verdict.EQUIVALENT, Verdict.NOISE}


@dataclass(frozen=True, kw_only=True)
class AnswerComparison:
    """How the predictions of two runs differ; means over samples.

    Attributes:
        top1_differs: Number of samples with another best class.
        samples: Number of samples.
        top1_interval: 95 % Wilson interval of the share.
        overlap: Share of common classes in the top k.
        rank_biased_overlap: Of the top k, p = 0.9.
        kendall_tau: Over the union of both top k.
        kl_divergence: In nats, of the candidate's probabilities from the reference's.
        differing: Indices of the samples with another best class.
    """

    top1_differs: int
    samples: int
    top1_interval: tuple[float, float]
    overlap: float
    rank_biased_overlap: float
    kendall_tau: float
    kl_divergence: float
    differing: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check what a document may have otherwise.

        Raises:
            ValueError: if more predictions differ than there are samples.
        """
        if not 0 <= self.top1_differs <= self.samples:
            raise ValueError(f"{self.top1_differs} top-1 predictions of {self.samples} samples can't differ")


@dataclass(frozen=True, kw_only=True)
class OutputComparison:
    """One output of both runs.

    Attributes:
        pair: Which outputs.
        error: Of the tensors.
        floor: The largest relative L2 that rounding errors make.
        floor_measured: Whether it was measured.
        answers: How predictions differ, when the output is class scores.
        verdict: Of this output.
        reason: In words.
        notes: What was done to make both comparable.
        open: Whether the verdict may change once the original's rounding error is measured a second time.
        hidden: Relative L2 of the wrongest slice, where that of all values hides it; 0 elsewhere.
        fits: How well each arithmetic explains the difference, of those that were simulated.
        explained: What explains the difference.
        metrics: What a user's own say, by their names.
        tests: A tolerance for tests of a user's own, where the target is right; None elsewhere.
    """

    pair: OutputPair
    error: TensorError
    floor: float
    floor_measured: bool
    answers: AnswerComparison | None
    verdict: Verdict
    reason: str
    notes: tuple[str, ...]
    open: bool = False
    hidden: float = 0.0
    fits: tuple[Fit, ...] = ()
    explained: Explained | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    tests: ForTests | None = None

    @property
    def decisive(self) -> float:
        """The relative error that decides: of all values, or of those that they hide."""
        return math.inf if self.error.mismatched else max(self.error.relative_l2, self.hidden)


def _badness(output: OutputComparison) -> tuple[int, float]:
    """By which the worst output is found."""
    return output.verdict.severity, output.decisive


@dataclass(frozen=True, kw_only=True)
class ComparedOutputs:
    """The comparison of all outputs of a converted model with the original's.

    Attributes:
        verdict: The worst of the outputs'.
        reason: Of the worst output.
        outputs: One for each pair.
        unpaired: Outputs without partner, in words.
        face: By the reference's outputs, how the signature differs whatever the numbers are, in words.
        layouts: In which other layout inputs and outputs are, where that's no fault, in words.
        arithmetic: That explains all differences which float32 doesn't; "" where none was recognized.
        chosen: Names of outputs whose elements are judged by a tolerance that somebody chose.
    """

    verdict: Verdict
    reason: str
    outputs: tuple[OutputComparison, ...]
    unpaired: tuple[str, ...]
    face: Mapping[str, str] = field(default_factory=dict)
    layouts: tuple[str, ...] = ()
    arithmetic: str = ""
    chosen: frozenset[str] = frozenset()

    @property
    def open(self) -> bool:
        """Whether a second measurement of the source's rounding may change the verdict."""
        return not self.unpaired and any(output.open for output in self.outputs)

    @property
    def differs(self) -> bool:
        """Whether numbers are further off than rounding, or the bits that were wanted, explain."""
        right = not self.unpaired and all(output.verdict.is_right for output in self.outputs)
        return not self.verdict.is_right and not (self.face and right)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two runs.

    Attributes:
        reference: Name of the run that is the specification.
        candidate: Name of the other.
        verdict: The worst of the outputs'.
        reason: Of the worst output.
        outputs: One for each pair.
        unpaired: Outputs without partner, in words.
        times: Candidate's times against the reference's.
        arithmetic: That explains all differences which float32 doesn't; "" where none was recognized.
    """

    reference: str
    candidate: str
    verdict: Verdict
    reason: str
    outputs: tuple[OutputComparison, ...]
    unpaired: tuple[str, ...]
    times: TimeComparison
    arithmetic: str = ""

    @property
    def open(self) -> bool:
        """Whether a second measurement of the source's rounding may change the verdict."""
        return not self.unpaired and any(output.open for output in self.outputs)

    @property
    def worst(self) -> OutputComparison | None:
        """The output with the worst verdict, then the largest relative error."""
        return max(self.outputs, key=_badness, default=None)


def compare_runs(reference: Run, candidate: Run, tolerance: Tolerance, **others: Any) -> Comparison:
    """Compare a run with its specification, their times too.

    Args:
        reference: The specification.
        candidate: The run to judge; over the same samples.
        tolerance: What counts as equal.
        others: What else `compare_outputs` takes.
    """
    compared = vars(compare_outputs(reference, candidate, tolerance, **others))
    return Comparison(
        reference=reference.name,
        candidate=candidate.name,
        times=compare_times(reference.batch_seconds, candidate.batch_seconds),
        **{item.name: compared[item.name] for item in fields(Comparison) if item.name in compared},
    )


def compare_outputs(
    reference: Run,
    candidate: Run,
    tolerance: Tolerance,
    *,
    top_k: int = 5,
    metrics: Sequence[Metric] = (),
    source: Run | None = None,
    **evidence: Any,
) -> ComparedOutputs:
    """Compare the outputs of a run with its specification's; whatever gives a verdict asks this.

    Args:
        reference: The specification.
        candidate: The run to judge; over the same samples.
        tolerance: What counts as equal.
        top_k: How many of the best classes to compare.
        metrics: A user's own.
        source: What both were made from, where the reference isn't the specification itself.
        evidence: What's known of the reference's rounding: the fields of `Evidence`.
    """
    known: Evidence[Run] = Evidence(**evidence)
    already = _quantized_already(source or reference, (reference, candidate))
    if reference.count != candidate.count:
        raise ValueError(f"{reference.name} has {reference.count} samples, {candidate.name} {candidate.count}")
    reference, candidate = reference.with_quantization_of(candidate), candidate.with_quantization_of(reference)
    known = known.each(lambda run: run.with_quantization_of(reference))
    others = known.second_opinion, known.rounded
    reference, candidate, (second, rounded), sets = in_rows(reference, candidate, others)
    if sets:  # what's computed by other means has other rows
        known = Evidence()
    known = replace(known, second_opinion=second, rounded=rounded, wide=second is not None and second.exact)
    channels, ordered = (reference.channels, candidate.channels), (reference.ordered, candidate.ordered)
    pairs, left = pair_outputs(reference.arrays, candidate.arrays, channels, ordered=ordered)
    specs = [(reference.spec(pair.reference), candidate.spec(pair.candidate)) for pair in pairs]
    tolerances = [tolerance.of_output(*both, candidate.rounding) for both in specs]
    outputs = tuple(
        _compare_output(pair, reference, candidate, own, top_k, known, sets.get(pair.reference), already=already)
        for pair, own in zip(pairs, tolerances, strict=True)
    )
    may_be = () if already or candidate.budgeted else tried(tolerance.arithmetic or candidate.computes_in)
    stored: frozenset[str] = frozenset()
    if may_be and known.simulated:
        types = (stored_in(candidate.arrays[item.candidate], reference.arrays[item.reference]) for item in pairs)
        stored = frozenset.intersection(*([names for names in types if names] or [stored]))
    outputs, arithmetic = by_arithmetic(outputs, may_be, stored)
    if metrics:
        outputs = tuple(_measured(output, reference, candidate, metrics) for output in outputs)
    verdict, reason = Verdict.FAULTY, "; ".join(left)
    if not left:
        worst = max(outputs, key=_badness)
        verdict = worst.verdict
        reason = worst.reason if len(outputs) == 1 else f"output {worst.pair.reference}: {worst.reason}"
    face, moved = changed_face(reference, candidate, pairs, strict=tolerance.strict_signature)
    layouts = tuple(f"the signature differs, the numbers don't: {words}" for words in moved.values())
    if face and verdict is not Verdict.FAULTY:
        verdict, reason = Verdict.FAULTY, f"{'; '.join(face.values())} (the numbers are {verdict}: {reason})"
    outputs = tuple(replace(item, notes=(*item.notes, *layouts)) for item in outputs[:1]) + outputs[1:]
    chosen = frozenset(pair.reference for pair, own in zip(pairs, tolerances, strict=True) if own.given)
    return ComparedOutputs(
        verdict=verdict,
        reason=reason,
        outputs=outputs,
        unpaired=tuple(left),
        face=face,
        layouts=layouts,
        arithmetic=arithmetic,
        chosen=chosen,
    )


def _measured(
    output: OutputComparison, reference: Run, candidate: Run, metrics: Sequence[Metric]
) -> OutputComparison:
    """An output with what a user's own metrics say of it."""
    pair = output.pair
    arrays = fit(pair, reference.arrays[pair.reference], candidate.arrays[pair.candidate])
    values, verdict, words = measured(metrics, pair.reference, *arrays)
    if verdict.severity <= output.verdict.severity:
        return replace(output, metrics=values, notes=(*output.notes, *filter(None, [words])))
    reason = f"{words} (without your metrics the output is {output.verdict}: {output.reason})"
    return replace(output, metrics=values, verdict=verdict, reason=reason, open=False, tests=None)


def _of_steps(one: Array, two: Array, reference: Run, candidate: Run, allowed: float) -> str:
    """At which time step an output is wrong first, and which model keeps a state that the other lacks."""
    errors = [relative_error(one[:, step], two[:, step]) for step in range(reference.steps)]
    wrong = [step for step, error in enumerate(errors) if error > allowed]
    first = wrong[0] if wrong else int(np.argmax(errors))
    words = f"the error begins at time step {first + 1} of {reference.steps}"
    if first:
        words += ", where the state of earlier steps matters"
    for run, other, whose in ((reference, candidate, "original"), (candidate, reference, "converted")):
        if run.states and not other.states:
            words += f"; only the {whose} model keeps a state ({', '.join(run.states)})"
    return words


def accuracy(run: Run, labels: Sequence[int | None], k: int = 1) -> tuple[int, int] | None:
    """Right answers (in the top k) and labelled samples, of the first output; None without labels or scores."""
    if not run.outputs or run.outputs[0].name in run.lengths:
        return None
    return right_answers(run.arrays[run.outputs[0].name], labels, k)


def _compare_output(
    pair: OutputPair,
    reference: Run,
    candidate: Run,
    tolerance: Tolerance,
    top_k: int,
    evidence: Evidence[Run],
    rows: RowSet | None,
    *,
    already: bool,
) -> OutputComparison:
    one, two = fit(pair, reference.arrays[pair.reference], candidate.arrays[pair.candidate])
    notes = [*pair.notes, *_assumed(pair, reference, candidate), *(rows.notes if rows is not None else ())]
    scores = rows is None and is_scores(one) and is_scores(two)
    answers, normalized, softmax = None, (False, False), ""
    if scores:
        answers, normalized = _compare_answers(pair, (one, two), top_k, reference, candidate)
        if normalized[0] != normalized[1]:
            softmax = "added" if normalized[1] else "removed"
            sides = ("original", "converted model")[:: 1 if normalized[1] else -1]
            notes.append("the {} gives logits, the {} probabilities: compared as probabilities".format(*sides))
            one, two = map(probabilities, (one, two), normalized)
    quantized = not already and (candidate.budgeted or reference.budgeted)
    case = _Case(pair, reference, candidate, tolerance, answers, normalized[0], softmax, quantized, already)
    others = evidence.each(lambda run: _again(pair, reference, run, bool(softmax)))
    if pair.reference in reference.unsteady:
        others = Evidence()  # they'd be other draws
    found = _judged(case, one, two, others)
    error, verdict, reason, floor = found.error, found.verdict, found.reason, found.floor
    noise = tolerance.noise_margin * floor.relative_l2
    notes += found.notes
    unexplained = verdict is not Verdict.EQUIVALENT and not (quantized or already)
    by = explained_by(verdict, error.relative_l2, floor, tolerance)
    may_be_rounding = found.open or (unexplained and evidence.rounded is None)
    if others.exact is not None and not (quantized or already or softmax or verdict is Verdict.EQUIVALENT):
        beside = beside_exact(one, two, others, tolerance, functools.partial(_judged, case))
        if beside is not None and (beside[0] is not verdict or beside[2]):
            verdict, reason, told, by = beside
            notes += told
    both = error.nan_reference + error.inf_reference  # the candidate's too, where none is mismatched
    if both and not error.mismatched:
        words = _no_numbers(both, error.count, one)
        if both < numbers.NO_NUMBERS * error.count or verdict is Verdict.FAULTY:
            notes.append(words)
        else:
            verdict, reason = Verdict.UNDECIDED, f"{words}: can't tell whether the conversion is right"
    spread = None if case.exactly(one, two) else spread_between_samples(one)
    if spread is not None and spread < HARDLY_ANY:
        notes.append(
            f"all {len(one)} samples give nearly the same output ({percent(spread)} apart), so that the top-1 column "
            "says little. Try your own data, or inputs of another range"
        )
        # Where a quantized model is further off than the original's outputs are from one another, a model that gives
        # the same output whatever it's fed would be within the limit, too.
        accused = verdict is Verdict.FAULTY and error.cosine >= tolerance.quantized_cosine
        excused = verdict is Verdict.QUANTIZED and error.relative_l2 > spread
        if quantized and (accused or excused):
            verdict, reason = Verdict.UNDECIDED, f"{reason}; but all samples give nearly the same output"
    rounding = coarser(reference.rounding, candidate.rounding)
    whole = None if rows is None else rows.judge(tolerance, quantized=quantized or already, precision=rounding)
    if whole is not None and whole[0].severity >= verdict.severity:
        verdict, reason = whole[0], f"{whole[1]} (of the rows that both models give: {reason})"
        may_be_rounding = verdict is Verdict.FAULTY and others.rounded is None
    complaint = candidate.intent.complaint if candidate.intent is not None else None
    if complaint is not None and verdict is Verdict.FAULTY:
        reason += f"; {complaint}"
    elif complaint is not None:
        notes.append(complaint)
    if softmax and candidate.converted and verdict is not Verdict.FAULTY:
        verdict, reason = Verdict.FAULTY, f"the conversion {softmax} a Softmax (compared as probabilities: {reason})"
    if verdict is Verdict.FAULTY and reference.steps > 1 and one.ndim > 1:
        reason += f"; {_of_steps(one, two, reference, candidate, noise)}"
    off = math.sqrt(1 - tolerance.quantized_cosine**2) if quantized else noise
    random = _unless_random(pair, reference, candidate, off, comparable=rows is None and not softmax)
    verdict, reason = random or (verdict, reason)
    return OutputComparison(
        pair=pair,
        error=error,
        floor=floor.relative_l2,
        floor_measured=floor.measured,
        answers=answers,
        verdict=verdict,
        reason=reason,
        notes=tuple(notes),
        open=may_be_rounding,
        hidden=found.hidden,
        explained=by if verdict.is_right or verdict is Verdict.FAULTY else None,
        fits=fits_of(one, two, others, noise) if random is None else (),
        tests=None
        if case.exactly(one, two) or verdict not in _RIGHT or by.by is By.BOUND
        else for_tests(error, floor.relative_l2, tolerance.noise_margin),
    )


@dataclass(frozen=True)
class _Case:
    """Two outputs that are compared, and the limits that apply to their difference.

    Attributes:
        pair: Which.
        reference: The specification's run.
        candidate: The run to judge.
        tolerance: What counts as equal.
        answers: Where it's class scores.
        normalized: Whether the reference gives probabilities.
        softmax: What a conversion did to a softmax; "" for nothing.
        quantized: Whether few bits are meant.
        already: Whether the original is quantized itself.
    """

    pair: OutputPair
    reference: Run
    candidate: Run
    tolerance: Tolerance
    answers: AnswerComparison | None
    normalized: bool
    softmax: str
    quantized: bool
    already: bool

    def exactly(self, one: Array, two: Array) -> bool:
        """Whether arrays are equal or not, and no tolerance means anything."""
        return are_whole(one, two) and (are_texts(one, two) or not self.tolerance.given)


@dataclass(frozen=True)
class _Judged:
    """The verdict on an output's numbers.

    Attributes:
        error: Candidate against reference.
        floor: Of rounding errors.
        verdict: Of the numbers alone.
        reason: In words.
        open: Whether the verdict may change once rounding errors are measured a second time.
        hidden: Relative L2 of the wrongest slice; 0 where the norm of all hides none.
        notes: On slices that aren't certain.
    """

    error: TensorError
    floor: Floor
    verdict: Verdict
    reason: str
    open: bool
    hidden: float = 0.0
    notes: tuple[str, ...] = ()


def _judged(case: _Case, one: Array, two: Array, others: Evidence[Array]) -> _Judged:
    """Judge numbers by what is known of the reference's rounding."""
    pair, reference, candidate, tolerance = case.pair, case.reference, case.candidate, case.tolerance
    exactly = case.exactly(one, two)
    error = compare_tensors(one, two, rtol=0 if exactly else tolerance.rtol, atol=0 if exactly else tolerance.atol)
    rounding = Rounding(
        operators=max(reference.operators, candidate.operators),
        precision=coarser(reference.rounding, candidate.rounding),
        exact=others.in_float64,
    )
    again = others.by_other_means
    measured = {name: _difference(one, other) for name, other in again.items()}
    types = reference.spec(pair.reference).dtype, candidate.spec(pair.candidate).dtype
    floor = of_types(rounding.floor(**measured), types, one.size, tolerance)
    once = "disturbed" not in again  # so rounding errors were measured at most once
    if exactly:
        few = rounding.precision if rounding.precision in HALF_PRECISIONS else ""
        narrow = "eight bits" if case.already else few
        shares = [differing_share(run, one[: len(run)]) for run in again.values() if are_whole(run)]
        ties = max(shares, default=None)
        verdict, reason = judge_whole(one, two, tolerance, quantized=case.quantized, narrow=narrow, ties=ties)
    else:
        top1 = case.answers.top1_differs / case.answers.samples if case.answers else None
        integers = _integers(pair, reference, measured.get("second"), bool(case.softmax)) if case.already else None
        verdict, reason = judge(
            error, floor, tolerance, quantized=case.quantized, top1_difference=top1, integers=integers
        )
    may_be_rounding = verdict in {Verdict.FAULTY, Verdict.UNDECIDED} and (
        once if exactly else rounding_could_excuse(error, floor, tolerance, exact=others.in_float64)
    )
    slices = None
    if case.quantized and verdict.is_right and not exactly and not case.normalized:
        grid = candidate.spec(pair.candidate).quantization
        slices = coarse_slices(one, two, grid.scale if grid else 0.0, math.sqrt(1 - tolerance.quantized_cosine**2))
    if not (exactly or case.quantized or case.already or error.mismatched):
        asked = (
            one.ndim > 1 and FEW_DIGITS.keys().isdisjoint(types) and not (tolerance.given and error.within_tolerance)
        )
        own = replace(rounding, measured_in=reference.rounding)
        slices = wrong_slices(one, two, again, own, margin=tolerance.noise_margin) if asked else None
        if slices is not None and verdict in {Verdict.EQUIVALENT, Verdict.NOISE}:
            may_be_rounding = once
    if slices is None or not (slices.became or (slices.certain and slices.error > numbers.HIDES * error.relative_l2)):
        return _Judged(error, floor, verdict, reason, may_be_rounding)
    first, size = int(pair.background < 0), one.shape[slices.axis]
    words = slices.words(pair.reference, _axes(pair, reference), first, size)
    if not slices.certain:
        return _Judged(error, floor, verdict, reason, may_be_rounding, notes=(words,))
    if verdict.is_right:
        verdict, reason = Verdict.FAULTY, words
    elif verdict is Verdict.FAULTY:
        reason += f"; {words}"
    return _Judged(error, floor, verdict, reason, may_be_rounding, slices.error)


def _difference(one: Array, other: Array) -> float:
    """Relative L2 between the reference's first samples and what it gives by other means."""
    return compare_tensors(other, one[: len(other)], rtol=0, atol=0).relative_l2


def _quantized_already(source: Run, compared: tuple[Run, Run]) -> bool:
    """Whether the original is quantized itself, so that the limits for quantized models don't apply."""
    return source.budgeted and not source.asked and not any(run.asked for run in compared)


def _integers(pair: OutputPair, reference: Run, measured: float | None, as_probabilities: bool) -> Integers:
    """The rounding error to expect between runs of a quantized original and models made of it."""
    quantization = reference.spec(pair.reference).quantization
    operators = reference.operators if reference.arithmetic is None else reference.arithmetic
    step = quantization.scale if quantization and not as_probabilities else 0.0
    return Integers(measured, operators, step, reference.rounds)


def _axes(pair: OutputPair, reference: Run) -> list[int]:
    """The axes of an output that are compared: those of length 1 are left out, or all are one (`fit`)."""
    shape = reference.arrays[pair.reference].shape
    return [0, 1] if pair.flat else [0, *(axis for axis in range(1, len(shape)) if shape[axis] > 1)]


def _assumed(pair: OutputPair, reference: Run, candidate: Run) -> list[str]:
    """A note where a format has no place for the scale and zero point of integers."""
    sides = {"original": pair.reference in reference.assumed, "converted": pair.candidate in candidate.assumed}
    words = "file can't hold a scale and zero point for its integers: those of the other file were used"
    return [f"the {side} {words}" for side, assumed in sides.items() if assumed]


def _no_numbers(both: int, count: int, array: Array) -> str:
    """How many values of an output are NaN or infinite in both models."""
    words = f"{both} of {count} values are NaN or infinite in both models"
    empty = int((~np.isfinite(array).reshape(len(array), -1).any(axis=1)).sum())
    return f"{words}; {empty} of {len(array)} samples have no finite value" if empty else words


def _unless_random(
    pair: OutputPair, reference: Run, candidate: Run, allowed: float, *, comparable: bool
) -> tuple[Verdict, str] | None:
    """The verdict on an output that is random, `comparable` as it is; None where neither is."""
    words = "gives other outputs each time it's run (two runs on the same inputs differ by {})"
    name = reference.name.partition("@")[0]
    known, found = reference.unsteady.get(pair.reference), candidate.unsteady.get(pair.candidate)
    if known is None:
        return None if found is None else (Verdict.FAULTY, f"{words.format(percent(found))}, and {name} doesn't")
    if found is None and candidate.seconds.any():  # not of outputs that were computed elsewhere, once
        return Verdict.FAULTY, f"gives the same outputs each time it's run, and {name} {words.format(percent(known))}"
    one, two = reference.repeated.get(pair.reference), candidate.repeated.get(pair.candidate)
    if one is None or two is None or not comparable:
        return Verdict.UNDECIDED, f"{name} {words.format(percent(known))}"
    count, samples = min(len(one), len(two)), min(one.shape[1], two.shape[1])
    one, two = fit(pair, *(runs[:count, :samples].reshape(-1, *runs.shape[2:]) for runs in (one, two)))
    return judge_draws(one.reshape(count, -1), two.reshape(count, -1), allowed)


def _compare_answers(
    pair: OutputPair, scores: tuple[Array, Array], k: int, reference: Run, candidate: Run
) -> tuple[AnswerComparison, tuple[bool, bool]]:
    one, two = scores
    ours, theirs = (top_k(scores, min(k, scores.shape[1]))[0] for scores in (one, two))
    softmax = holds_probabilities(one, reference.spec(pair.reference), quantized=reference.quantized)
    spec, rounded = candidate.spec(pair.candidate), softmax and candidate.computes_in != FLOAT32.name
    also = holds_probabilities(two, spec, quantized=candidate.quantized, rounded=rounded)
    differs = ours[:, 0] != theirs[:, 0]
    count = int(differs.sum())
    divergence = [
        kl_divergence(probabilities(one[rows], softmax), probabilities(two[rows], also))
        for rows in row_chunks(one.shape)
    ]
    comparison = AnswerComparison(
        top1_differs=count,
        samples=len(differs),
        top1_interval=wilson_interval(count, len(differs)),
        overlap=float(np.mean(overlap(ours, theirs))),
        rank_biased_overlap=float(np.mean(rank_biased_overlap(ours, theirs))),
        kendall_tau=float(np.mean(kendall_tau_union(ours, theirs))),
        kl_divergence=float(np.mean(np.concatenate(divergence))),
        differing=tuple(np.flatnonzero(differs).tolist()),
    )
    return comparison, (softmax, also)


def _again(pair: OutputPair, reference: Run, second: Run | None, as_probabilities: bool) -> Array | None:
    """The output of the reference's second computation, as scores or probabilities like what's compared."""
    if second is None or pair.reference not in second.arrays:
        return None
    other = second.arrays[pair.reference]
    other, _ = fit(replace(pair, permutation=None), other, other)
    if as_probabilities:
        spec = reference.spec(pair.reference)
        other = probabilities(other, holds_probabilities(other, spec, quantized=reference.quantized))
    return other

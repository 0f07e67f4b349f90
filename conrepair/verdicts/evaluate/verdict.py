"""From measured errors to a verdict.

`equivalent`: every element is within tolerance, and so is the whole (relative L2), because a softmax over many
classes makes elements so small that any absolute tolerance passes them; nothing is relative to zeros. `noise`:
beyond that, but within the rounding error that the source itself has. `quantized`: a target that is meant to be
stored in few bits, within the budget for that. `undecided`: a source that differs as much from itself in float64,
and too much to call it noise. `faulty`: everything else, and whatever is not a finite number on one side only.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace

from conrepair.ground.data.tensor_spec import FEW_DIGITS
from conrepair.ground.metrics.tensors import TensorError
from conrepair.ground.runtime.words import telling
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.judging.floor import By, Floor


class Verdict(enum.StrEnum):
    """What is said of a target, from best to worst."""

    EQUIVALENT = "equivalent"
    NOISE = "noise"
    QUANTIZED = "quantized"
    UNDECIDED = "undecided"
    FAULTY = "faulty"
    UNDEPLOYABLE = "undeployable"

    @property
    def severity(self) -> int:
        """Place in the order from best to worst."""
        return list(Verdict).index(self)

    @property
    def is_right(self) -> bool:
        """Whether it's proven that a target is as it should be."""
        return self.severity <= Verdict.QUANTIZED.severity


@dataclass(frozen=True)
class Integers:
    """What is owed by a target of a source that is itself in eight bits: not its quantization, only its rounding.

    Attributes:
        measured: Relative L2 between two sets of the source's kernels; None where there's only one.
        operators: Number of operators of the source, those left out that only quantize and dequantize.
        step: Of the output, where it's stored in integers; else 0.
        rounds: Whether operators of the source round numbers to integers.
    """

    measured: float | None
    operators: int
    step: float = 0.0
    rounds: bool = False

    @property
    def real(self) -> bool:
        """Whether the source seems to compute in real numbers, with weights that are stored in eight bits."""
        rounds = self.rounds or self.step > 0
        return not rounds and self.measured is not None and 0 < self.measured < numbers.REAL_ARITHMETIC

    @property
    def owed(self) -> float:
        """Relative L2 that rounding to integers explains, as a random walk where it isn't measured to be more."""
        return max(numbers.KERNELS * (self.measured or 0.0), numbers.EIGHT_BITS * math.sqrt(max(self.operators, 1)))


def of_types(floor: Floor, types: tuple[str, str], count: int, tolerance: Tolerance) -> Floor:
    """A floor, no lower than what an output's own type does: numbers between two of its own become either.

    Args:
        floor: Of what is computed.
        types: Numpy's names of both outputs' types.
        count: Of elements.
        tolerance: From the configuration.
    """
    kind = max(types, key=lambda name: FEW_DIGITS.get(name, 0.0))
    step = FEW_DIGITS.get(kind, 0.0)
    share = max(numbers.FLIPPED, 1 / max(1, count)) if types[0] == types[1] else 1.0
    most = step * math.sqrt(share) / tolerance.noise_margin
    if most <= floor.relative_l2:
        return floor
    return replace(floor, relative_l2=most, by=By.OPERATORS, precision=kind)


def rounding_could_excuse(error: TensorError, floor: Floor, tolerance: Tolerance, *, exact: bool) -> bool:
    """Whether a difference beyond a floor may turn out to be rounding once that's measured a second time.

    Args:
        error: Candidate against reference.
        floor: That was measured once, or not at all.
        tolerance: From the configuration.
        exact: Whether it was measured in float64.
    """
    if floor.checked or error.mismatched or (error.relative_l2 > numbers.LARGEST_NOISE and not floor.doubted):
        return False
    most = tolerance.noise_margin * numbers.AGREE * floor.relative_l2
    return floor.doubted > 0 or not exact or not floor.measured or error.relative_l2 <= most


def judge(
    error: TensorError,
    floor: Floor,
    tolerance: Tolerance,
    *,
    quantized: bool,
    top1_difference: float | None,
    integers: Integers | None = None,
) -> tuple[Verdict, str]:
    """Judge one output.

    Args:
        error: Candidate against reference.
        floor: What rounding explains.
        tolerance: From the configuration.
        quantized: Whether the target is meant to be stored in fewer bits than the source.
        top1_difference: Share of samples with another best class, None when the output isn't class scores.
        integers: Where the source is quantized already: integer kernels differ by whole steps between runtimes.

    Returns:
        The verdict and its reason in words.
    """
    if error.mismatched:
        return Verdict.FAULTY, (
            f"{error.mismatched} values are NaN or infinite on one side only ({error.nan_candidate} NaN and "
            f"{error.inf_candidate} infinite in all; in the source {error.nan_reference} and {error.inf_reference})"
        )
    within = error.within_tolerance
    limit = tolerance.relative_l2
    if within and error.max_reference < numbers.SMALLEST and error.relative_l2 > 0:
        return Verdict.EQUIVALENT, (
            f"every element is within tolerance of a source that gives zeros only, the worst by {error.max_abs:.2e}"
        )
    if within and (limit is None or error.relative_l2 <= limit):
        return (Verdict.EQUIVALENT, f"every element is within tolerance, relative error {error.relative_l2:.1e}")
    if _is_noise(error, floor.relative_l2, tolerance):
        return Verdict.NOISE, (
            f"relative error {error.relative_l2:.1e} is within {tolerance.noise_margin:g} times {floor}"
        )
    if integers is not None and (not integers.real or error.relative_l2 <= integers.owed):
        return _judge_integers(error, integers, tolerance, top1_difference)
    if quantized:
        return _judge_quantized(error, tolerance, top1_difference)
    if floor.doubted and (_is_noise(error, floor.doubted, tolerance) or _is_as_bad(error, floor.doubted)):
        return Verdict.UNDECIDED, (
            f"relative error {error.relative_l2:.1e}; the source differs from itself by {floor.doubted:.1e} in "
            f"another arithmetic, where rounding explains {floor.relative_l2:.1e} by estimate, and no second "
            "measurement says which of them is right"
        )
    if floor.measured and _is_as_bad(error, floor.relative_l2):
        return Verdict.UNDECIDED, (
            f"relative error {error.relative_l2:.1e}, but the source differs from itself by {floor.relative_l2:.1e} "
            "in another arithmetic: it's so badly conditioned on these inputs that a fault would look the same"
        )
    return Verdict.FAULTY, (
        f"relative error {error.relative_l2:.1e}, the source's own rounding error is {floor.relative_l2:.1e}; "
        f"{error.exceeding} of {error.count} elements are beyond tolerance, the worst by {error.max_abs:.2e}"
    )


def _is_noise(error: TensorError, floor: float, tolerance: Tolerance) -> bool:
    return error.relative_l2 <= min(tolerance.noise_margin * floor, numbers.LARGEST_NOISE)


def _is_as_bad(error: TensorError, floor: float) -> bool:
    """Whether a large error is no larger than what the source differs from itself by."""
    as_large = floor >= 1 or 1 / numbers.AS_BAD <= error.norm_ratio <= numbers.AS_BAD
    return as_large and numbers.LARGEST_NOISE < error.relative_l2 <= numbers.AS_BAD * floor


def _judge_integers(
    error: TensorError, integers: Integers, tolerance: Tolerance, top1_difference: float | None
) -> tuple[Verdict, str]:
    """Judge a target of a source that is quantized already, and so has nothing to lose by quantization."""
    found = f"{_answers(top1_difference)}relative error {error.relative_l2:.1e}"
    if 0 < error.max_abs <= integers.step * (1 + numbers.OF_A_STEP):
        return Verdict.QUANTIZED, f"quantized as its source is; no element differs by more than a step: {found}"
    if integers.real:
        return Verdict.UNDECIDED, (
            f"{found}: its weights are quantized, but the source's own kernels differ by {integers.measured:.1e}, as "
            f"those of real numbers do. Rounding to integers would explain {integers.owed:.1e}"
        )
    explained = f"rounding to integers explains {integers.owed:.1e}"
    if error.relative_l2 <= min(integers.owed, numbers.LARGEST_NOISE):
        return Verdict.QUANTIZED, f"quantized as its source is: {found}, where {explained}"
    if integers.measured and error.relative_l2 <= integers.owed:
        return Verdict.UNDECIDED, (
            f"{found}, but the source differs from itself by {integers.measured:.1e} with other kernels: it's so "
            "badly conditioned on these inputs that a fault would look the same"
        )
    if integers.measured or _over_budget(error, tolerance, top1_difference):
        cosine = telling(error.cosine, digits=4)
        return Verdict.FAULTY, f"the source is quantized already, and {explained}: {found}, cosine {cosine}"
    return Verdict.UNDECIDED, (
        f"the source is quantized already, and {explained} by estimate: {found}; it has no second set of integer "
        "kernels to measure that with"
    )


def _answers(top1_difference: float | None) -> str:
    return "" if top1_difference is None else f"{top1_difference:.1%} of the top-1 answers differ, "


def _over_budget(error: TensorError, tolerance: Tolerance, top1_difference: float | None) -> bool:
    over_answers = top1_difference is not None and top1_difference > tolerance.quantized_top1
    return over_answers or error.cosine < tolerance.quantized_cosine


def _judge_quantized(error: TensorError, tolerance: Tolerance, top1_difference: float | None) -> tuple[Verdict, str]:
    measured = f"{_answers(top1_difference)}cosine {telling(error.cosine, digits=4)}, SQNR {error.sqnr_db:.1f} dB"
    if _over_budget(error, tolerance, top1_difference):
        return Verdict.FAULTY, (
            f"more than quantization explains: {measured} (budget: {tolerance.quantized_top1:.0%}, "
            f"{tolerance.quantized_cosine:g})"
        )
    return Verdict.QUANTIZED, f"a quantized model, within its budget: {measured}"

"""From measured errors to a verdict.

`equivalent`: every element is within tolerance, and so is the whole (relative L2), because a softmax over many
classes makes elements so small that any absolute tolerance passes them; nothing is relative to zeros. `noise`:
beyond that, but within the rounding error that the original itself has. `quantized`: a model that is meant to be
stored in few bits, within the limit for that. `undecided`: an original that differs as much from itself in float64,
and too much to call it noise. `faulty`: everything else, and whatever is not a finite number on one side only.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace

from conrepair.ground.data.tensor_spec import FEW_DIGITS
from conrepair.ground.metrics.tensors import TensorError
from conrepair.ground.runtime.words import percent, telling
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.judging.floor import By, Floor

_DOUBT = "Can't tell rounding from a fault: on these inputs, for which it's badly conditioned"


class Verdict(enum.StrEnum):
    """The verdict on a converted model, from best to worst."""

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
        """Whether the verdict says that the converted model is right."""
        return self.severity <= Verdict.QUANTIZED.severity


@dataclass(frozen=True)
class Integers:
    """The rounding error to expect where the original is quantized itself, so that quantization adds none.

    Attributes:
        measured: Relative L2 between two sets of the original's kernels; None where there's only one.
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
        """Relative L2 to expect of rounding to integers, as a random walk where it isn't measured to be more."""
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
        floor: Of rounding errors.
        tolerance: From the configuration.
        quantized: Whether the target is meant to be stored in fewer bits than the source.
        top1_difference: Share of samples with another best class, None when the output isn't class scores.
        integers: Where the source is quantized already: integer kernels differ by whole steps between runtimes.

    Returns:
        The verdict and its reason in words.
    """
    if error.mismatched:
        return Verdict.FAULTY, (
            f"{error.mismatched} values are NaN or infinite in one model only (converted: {error.nan_candidate} NaN, "
            f"{error.inf_candidate} infinite; original: {error.nan_reference} NaN, {error.inf_reference} infinite)"
        )
    within = error.within_tolerance
    limit = tolerance.relative_l2
    if within and error.max_reference < numbers.SMALLEST and error.relative_l2 > 0:
        return Verdict.EQUIVALENT, (
            f"every element is within tolerance of the original's zeros, the largest is {error.max_abs:.2e}"
        )
    if within and (limit is None or error.relative_l2 <= limit):
        return (Verdict.EQUIVALENT, f"every element is within tolerance, relative error {percent(error.relative_l2)}")
    if _is_noise(error, floor.relative_l2, tolerance):
        return Verdict.NOISE, (
            f"relative error {percent(error.relative_l2)} is within rounding error: at most "
            f"{tolerance.noise_margin:g} times {floor}"
        )
    if integers is not None and (not integers.real or error.relative_l2 <= integers.owed):
        return _judge_integers(error, integers, tolerance, top1_difference)
    if quantized:
        return _judge_quantized(error, tolerance, top1_difference)
    if floor.doubted and (_is_noise(error, floor.doubted, tolerance) or _is_as_bad(error, floor.doubted)):
        return Verdict.UNDECIDED, (
            f"relative error {percent(error.relative_l2)}. Can't tell rounding from a fault: the original model "
            f"differs from itself by {percent(floor.doubted)} in another arithmetic, where a rounding error of "
            f"{percent(floor.relative_l2)} is expected, and no other measurement could be made"
        )
    if floor.measured and _is_as_bad(error, floor.relative_l2):
        return Verdict.UNDECIDED, (
            f"relative error {percent(error.relative_l2)}. {_DOUBT}, the original model differs from itself by "
            f"{percent(floor.relative_l2)} in another arithmetic. Try other inputs"
        )
    return Verdict.FAULTY, (
        f"relative error {percent(error.relative_l2)}, beyond {floor}; {error.exceeding} of "
        f"{error.count} elements are beyond tolerance, the largest absolute difference is {error.max_abs:.2g}"
    )


def _is_noise(error: TensorError, floor: float, tolerance: Tolerance) -> bool:
    return error.relative_l2 <= min(tolerance.noise_margin * floor, numbers.LARGEST_NOISE)


def _is_as_bad(error: TensorError, floor: float) -> bool:
    """Whether a large error is no larger than the original's difference from itself in another arithmetic."""
    as_large = floor >= 1 or 1 / numbers.AS_BAD <= error.norm_ratio <= numbers.AS_BAD
    return as_large and numbers.LARGEST_NOISE < error.relative_l2 <= numbers.AS_BAD * floor


def _judge_integers(
    error: TensorError, integers: Integers, tolerance: Tolerance, top1_difference: float | None
) -> tuple[Verdict, str]:
    """Judge a model made of an original that is quantized already."""
    found = f"{_answers(top1_difference)}relative error {percent(error.relative_l2)}"
    if 0 < error.max_abs <= integers.step * (1 + numbers.OF_A_STEP):
        return Verdict.QUANTIZED, f"quantized as the original is; no element differs by more than a step: {found}"
    owed = percent(integers.owed)
    if integers.real:
        return Verdict.UNDECIDED, (
            f"{found}. Can't tell rounding from a fault: both models have quantized weights, but the original's own "
            f"kernels differ by {percent(integers.measured or 0.0)}, as if they computed in real numbers; rounding "
            f"to integers would make up to {owed}"
        )
    if error.relative_l2 <= min(integers.owed, numbers.LARGEST_NOISE):
        return Verdict.QUANTIZED, (
            f"quantized as the original is: {found}, within the rounding error of integer kernels (up to {owed})"
        )
    if integers.measured and error.relative_l2 <= integers.owed:
        return Verdict.UNDECIDED, (
            f"{found}. {_DOUBT}, the original model differs from itself by {percent(integers.measured)} with other "
            "kernels. Try other inputs"
        )
    if integers.measured or _over_budget(error, tolerance, top1_difference):
        return Verdict.FAULTY, (
            f"the original is quantized already, and the rounding error of integer kernels is up to {owed}: {found}, "
            f"cosine {telling(error.cosine, digits=4)}"
        )
    return Verdict.UNDECIDED, (
        f"the original is quantized already, and the rounding error of integer kernels is up to {owed} by estimate: "
        f"{found}. Can't tell rounding from a fault: there's no second set of kernels to measure it with"
    )


def _answers(top1_difference: float | None) -> str:
    return "" if top1_difference is None else f"{percent(top1_difference)} of the top-1 predictions differ, "


def _over_budget(error: TensorError, tolerance: Tolerance, top1_difference: float | None) -> bool:
    over_answers = top1_difference is not None and top1_difference > tolerance.quantized_top1
    return over_answers or error.cosine < tolerance.quantized_cosine


def _judge_quantized(error: TensorError, tolerance: Tolerance, top1_difference: float | None) -> tuple[Verdict, str]:
    measured = f"{_answers(top1_difference)}cosine {telling(error.cosine, digits=4)}, SQNR {error.sqnr_db:.1f} dB"
    if _over_budget(error, tolerance, top1_difference):
        return Verdict.FAULTY, (
            f"a quantized model, error above the limit: {measured} (limits: top-1 "
            f"{percent(tolerance.quantized_top1)}, cosine {tolerance.quantized_cosine:g})"
        )
    return Verdict.QUANTIZED, f"a quantized model, error within the limit: {measured}"

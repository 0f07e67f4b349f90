"""Outputs judged again by other tolerances, by the function that judged them, of the values that were saved."""

from __future__ import annotations

import itertools
from dataclasses import replace

from conrepair.evaluate.compare import Comparison, OutputComparison
from conrepair.evaluate.own_tests import for_tests
from conrepair.evaluate.tolerance import Tolerance
from conrepair.evaluate.verdict import HALF_PRECISIONS, Floor, Verdict, judge, rounding_could_excuse
from conrepair.metrics.tensors import TensorError

__all__ = ["comparison_again"]

_BY_OTHER_MEANS = "that verdict has other grounds than these numbers, or some that aren't saved"
_ELEMENTS = "which elements differ by how much isn't saved: compare with --rtol and --atol"


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
        floor = Floor(output.floor, output.floor_measured, precision)
        if judge(output.error, floor, old, quantized=quantized, top1_difference=top1) == saved:
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
    if verdict is Verdict.FAULTY and not counted:
        worst = f"elements are beyond tolerance, the worst by {error.max_abs:.2e}"
        reason = f"relative error {error.relative_l2:.1e}; {worst}"
    unmeasured = not output.floor_measured and rounding_could_excuse(error, floor, new, exact=False)
    if verdict is Verdict.FAULTY and output.verdict.is_right and unmeasured:
        verdict, reason = Verdict.UNDECIDED, f"{reason}; how much of it is rounding wasn't measured"
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

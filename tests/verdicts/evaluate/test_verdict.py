"""Bounds of verdicts, each from both sides."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from conrepair.ground.metrics.tensors import TensorError, compare_tensors
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Integers, Verdict, judge, rounding_could_excuse
from conrepair.verdicts.judging.floor import By, Floor, Rounding

TOLERANCE = Tolerance(noise_margin=10.0, quantized_top1=0.1, quantized_cosine=0.98)
PLAIN = compare_tensors(np.ones(100), np.ones(100), rtol=0, atol=0)


def error(relative: float, cosine: float = 1.0, **changes: object) -> TensorError:
    """Beyond tolerance, and finite."""
    made = dataclasses.replace(PLAIN, relative_l2=relative, cosine=cosine, exceeding=5, max_abs=1.0)
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def judged(
    found: TensorError,
    floor: Floor = Floor(1e-6, By.SECOND),  # noqa: B008
    *,
    quantized: bool = False,
    top1: float | None = None,
    integers: Integers | None = None,
) -> Verdict:
    return judge(found, floor, TOLERANCE, quantized=quantized, top1_difference=top1, integers=integers)[0]


def test_from_best_to_worst() -> None:
    assert [verdict.severity for verdict in Verdict] == list(range(6))
    assert [verdict for verdict in Verdict if verdict.is_right] == [
        Verdict.EQUIVALENT,
        Verdict.NOISE,
        Verdict.QUANTIZED,
    ]


@pytest.mark.parametrize(
    ("relative", "floor", "verdict"),
    [
        (9.9e-6, 1e-6, Verdict.NOISE),
        (1.1e-5, 1e-6, Verdict.FAULTY),
        (0.1, 0.5, Verdict.NOISE),  # no rounding excuses more
        (0.1001, 0.5, Verdict.UNDECIDED),
        (1.0, 0.5, Verdict.UNDECIDED),
        (1.01, 0.5, Verdict.FAULTY),  # further off than two that are each as far from the exact one
        (0.05, 0.004, Verdict.FAULTY),
    ],
)
def test_noise_is_what_rounding_explains(relative: float, floor: float, verdict: Verdict) -> None:
    assert judged(error(relative), Floor(floor, By.SECOND)) is verdict


def test_undecided_is_what_is_large() -> None:
    """Less than that is told from rounding, by however little the margin allows."""
    strict = Tolerance(noise_margin=1.0)
    for relative, verdict in ((0.08, Verdict.FAULTY), (0.1001, Verdict.UNDECIDED)):
        floor = Floor(0.06, By.SECOND)
        assert judge(error(relative), floor, strict, quantized=False, top1_difference=None)[0] is verdict


def test_an_estimate_excuses_nothing_large() -> None:
    assert judged(error(0.5), Floor(0.5, By.OPERATORS)) is Verdict.FAULTY
    assert judged(error(0.09), Floor(0.5, By.OPERATORS)) is Verdict.NOISE


@pytest.mark.parametrize(("ratio", "undecided"), [(0.49, False), (0.5, True), (1.0, True), (2.0, True), (2.1, False)])
def test_two_results_that_are_as_far_off_are_as_large(ratio: float, undecided: bool) -> None:
    found = judged(error(0.5, norm_ratio=ratio), Floor(0.5, By.SECOND))
    assert found is (Verdict.UNDECIDED if undecided else Verdict.FAULTY)


def test_a_source_that_has_no_digit_says_nothing_of_sizes_either() -> None:
    assert judged(error(2.9, norm_ratio=3.9), Floor(1.5, By.SECOND)) is Verdict.UNDECIDED
    assert judged(error(3.1, norm_ratio=4.1), Floor(1.5, By.SECOND)) is Verdict.FAULTY


def test_what_is_no_number_on_one_side_is_a_fault_whatever_the_rest() -> None:
    assert judged(dataclasses.replace(PLAIN, mismatched=1)) is Verdict.FAULTY


def test_zeros_have_no_relative_error() -> None:
    tiny = dataclasses.replace(PLAIN, max_reference=2.0**-127, relative_l2=math.inf, max_abs=1e-9)
    assert judged(tiny) is Verdict.EQUIVALENT
    assert judged(dataclasses.replace(tiny, exceeding=1)) is Verdict.FAULTY
    assert judged(dataclasses.replace(tiny, max_reference=2.0**-126)) is Verdict.FAULTY


def test_every_element_within_tolerance_is_not_enough() -> None:
    within = dataclasses.replace(PLAIN, relative_l2=TOLERANCE.relative_l2 or 0.0)
    assert judged(within) is Verdict.EQUIVALENT
    assert judged(dataclasses.replace(within, relative_l2=2 * within.relative_l2)) is Verdict.FAULTY


@pytest.mark.parametrize(
    ("cosine", "top1", "verdict"),
    [
        (0.98, None, Verdict.QUANTIZED),
        (0.979, None, Verdict.FAULTY),
        (0.99, 0.1, Verdict.QUANTIZED),
        (0.99, 0.11, Verdict.FAULTY),
        (0.97, 0.0, Verdict.FAULTY),
    ],
)
def test_the_budget_of_quantization(cosine: float, top1: float | None, verdict: Verdict) -> None:
    assert judged(error(0.2, cosine), quantized=True, top1=top1) is verdict


WALK = 2.0**-7 * 3  # of nine operators


@pytest.mark.parametrize(
    ("integers", "owed", "real"),
    [
        (Integers(None, 9), WALK, False),
        (Integers(None, 0), 2.0**-7, False),
        (Integers(0.0, 9), WALK, False),
        (Integers(0.001, 9), WALK, False),
        (Integers(0.02, 9), 0.06, False),
        (Integers(1e-6, 9), WALK, True),
        (Integers(1e-5, 9), WALK, False),
        (Integers(1e-6, 9, step=0.1), WALK, False),
        (Integers(1e-6, 9, rounds=True), WALK, False),
    ],
)
def test_what_rounding_to_integers_explains(integers: Integers, owed: float, real: bool) -> None:
    assert integers.owed == pytest.approx(owed)
    assert integers.real is real


@pytest.mark.parametrize(
    ("found", "integers", "top1", "verdict"),
    [
        (error(0.5, 0.9, max_abs=0.1), Integers(None, 9, step=0.1), None, Verdict.QUANTIZED),  # no more than a step
        (error(0.5, 0.9, max_abs=0.10009), Integers(None, 9, step=0.1), None, Verdict.QUANTIZED),
        (error(0.5, 0.9, max_abs=0.11), Integers(None, 9, step=0.1), None, Verdict.FAULTY),
        (error(WALK), Integers(0.001, 9), None, Verdict.QUANTIZED),
        (error(1.01 * WALK), Integers(0.001, 9), None, Verdict.FAULTY),
        (error(0.099), Integers(0.05, 9), None, Verdict.QUANTIZED),
        (error(0.12), Integers(0.05, 9), None, Verdict.UNDECIDED),  # explained, and too much to be noise
        (error(Integers(0.05, 9).owed), Integers(0.05, 9), None, Verdict.UNDECIDED),
        (error(0.16), Integers(0.05, 9), None, Verdict.FAULTY),
        (error(0.05), Integers(None, 9), None, Verdict.UNDECIDED),  # by estimate only
        (error(0.05, 0.97), Integers(None, 9), None, Verdict.FAULTY),  # beyond what quantization may do, even
        (error(0.05), Integers(None, 9), 0.2, Verdict.FAULTY),
        (error(0.02), Integers(1e-6, 9), None, Verdict.UNDECIDED),  # it computes in real numbers
        (error(0.03), Integers(1e-6, 9), None, Verdict.FAULTY),
    ],
)
def test_a_target_of_a_quantized_source(
    found: TensorError, integers: Integers, top1: float | None, verdict: Verdict
) -> None:
    assert judged(found, integers=integers, top1=top1, quantized=False) is verdict


def test_nothing_is_said_by_a_floor_that_nobody_confirms() -> None:
    floor = Rounding(operators=4, exact=True).floor(0.15)
    assert judged(error(0.1), floor) is Verdict.UNDECIDED
    assert judged(error(0.25), floor) is Verdict.UNDECIDED
    assert judged(error(0.35), floor) is Verdict.FAULTY


@pytest.mark.parametrize(
    ("relative", "floor", "exact", "expected"),
    [
        (1e-3, Floor(1e-6, By.SECOND), True, False),  # no second measurement can explain so much
        (2e-4, Floor(1e-6, By.SECOND), True, True),
        (1e-3, Floor(1e-6, By.SECOND), False, True),  # other kernels may share their rounding
        (1e-3, Floor(1e-6, By.OPERATORS), False, True),
        (0.5, Floor(1e-6, By.SECOND), False, False),
        (0.5, Floor(1e-6, By.OPERATORS, doubted=0.3), True, True),
        (1e-3, Floor(1e-6, By.SECOND, checked=True), False, False),
    ],
)
def test_rounding_is_measured_again_where_that_may_change_the_verdict(
    relative: float, floor: Floor, exact: bool, expected: bool
) -> None:
    assert rounding_could_excuse(error(relative), floor, Tolerance(), exact=exact) is expected

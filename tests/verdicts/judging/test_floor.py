"""How large a difference rounding explains, by what was measured."""

from __future__ import annotations

import math

import pytest

from conrepair.verdicts.judging.floor import By, Floor, Rounding, coarser

EPSILON = 2.0**-23


def test_half_precision_is_coarser() -> None:
    assert coarser("float16", "float32") == coarser("float32", "float16") == "float16"
    assert coarser("float16", "bfloat16") == "bfloat16"
    assert coarser("int8", "float16") == "float16"  # whole numbers are computed with as float32's
    assert Rounding(operators=4).estimate == 2 * EPSILON
    assert Rounding(operators=0).estimate == EPSILON
    assert Rounding(operators=9, precision="float16").estimate == 3 * 2.0**-10
    assert Rounding(operators=9, precision="bfloat16").estimate == 3 * 2.0**-7


ESTIMATE = 2 * EPSILON  # of four operators


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (None, Floor(ESTIMATE, By.OPERATORS)),
        (EPSILON, Floor(ESTIMATE, By.OPERATORS)),  # the estimate is larger
        (ESTIMATE, Floor(ESTIMATE, By.SECOND)),
        (99 * ESTIMATE, Floor(99 * ESTIMATE, By.SECOND)),
        (101 * ESTIMATE, Floor(ESTIMATE, By.OPERATORS, doubted=101 * ESTIMATE)),  # of float64, too
        (math.inf, Floor(ESTIMATE, By.OPERATORS)),
        (math.nan, Floor(ESTIMATE, By.OPERATORS)),
    ],
)
def test_a_floor_is_a_measurement_of_the_usual_size_or_an_estimate(
    measured: float | None, exact: bool, expected: Floor
) -> None:
    assert Rounding(operators=4, exact=exact).floor(measured) == expected


def test_kernels_that_differ_by_much_are_themselves_in_doubt() -> None:
    assert Rounding(operators=4, exact=True).floor(0.15) == Floor(ESTIMATE, By.OPERATORS, doubted=0.15)
    assert Rounding(operators=4, exact=False).floor(0.15) == Floor(ESTIMATE, By.OPERATORS)


@pytest.mark.parametrize(
    ("measured", "disturbed", "exact", "expected"),
    [
        (0.15, 0.02, True, 0.15),  # badly conditioned, by both measurements
        (0.02, 0.15, True, 0.15),
        (0.15, 1e-5, True, 3e-4),  # float64 gone wrong
        (1e-5, 0.15, True, 3e-4),  # numbers that mustn't be disturbed, such as ids
        (0.15, 1e-5, False, 3e-4),  # optimizations gone wrong
        (1e-9, 0.02, False, 0.02),  # kernels that share their rounding say nothing
        (None, 0.02, False, 0.02),
        (1e-9, 1e-9, True, ESTIMATE),
    ],
)
def test_two_measurements_of_a_floor_check_one_another(
    measured: float | None, disturbed: float, exact: bool, expected: float
) -> None:
    floor = Rounding(operators=4, exact=exact).floor(measured, disturbed)
    assert floor.checked
    assert floor.relative_l2 == pytest.approx(expected)


def test_a_floor_says_by_what_it_is_known() -> None:
    rounding = Rounding(operators=4)
    assert [rounding.floor(*found).by for found in ((None,), (1e-6,), (1e-6, 2e-6), (1e-9, 1e-9))] == [
        By.OPERATORS,
        By.SECOND,
        By.ESTIMATE,
        By.OPERATORS,
    ]
    assert str(rounding.floor(1e-6)) == "the original's own rounding error (0.00010 %, measured)"
    assert str(Rounding(operators=4, precision="float16").floor()) == ("float16's rounding error (0.20 %, estimated)")


def test_what_was_measured_in_a_finer_type_counts_as_the_coarser_one_has_it() -> None:
    known = {"operators": 4, "precision": "float16"}
    assert Rounding(**known, measured_in="float32").floor(1e-6, 1e-6).relative_l2 == pytest.approx(2.0**13 * 1e-6)
    assert Rounding(**known, measured_in="float16").floor(4e-3, 4e-3).relative_l2 == pytest.approx(4e-3)
    assert Rounding(**known).floor(4e-3, 4e-3).relative_l2 == pytest.approx(4e-3), "taken as it is"
    fine = Rounding(operators=4, measured_in="float16")
    assert fine.floor(4e-3, 4e-3).relative_l2 == pytest.approx(4e-3)


@pytest.mark.parametrize("precision", ["float64", "mixed float16", "quantized weights"])
def test_other_precisions_have_the_estimate_of_float32(precision: str) -> None:
    floor = Rounding(operators=4, precision=precision).floor()
    assert str(floor) == "the original's own rounding error (below 0.0001 %, estimated)"


def test_a_piece_may_be_off_by_more_units_than_each_of_many() -> None:
    assert Rounding(operators=1, units=8.0).estimate == 8 * EPSILON

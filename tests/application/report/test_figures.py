"""Figures of a row, in the digits that a form asks for."""

from __future__ import annotations

import math

import pytest

from conrepair.application.report.figures import Figures, Measure, Milliseconds, Share, figures_of
from conrepair.application.report.result import Ran
from conrepair.ground.metrics.statistics import TimeStatistics

MEASURED = Figures(answers=Share(3, 20), error=Measure(0.012345), milliseconds=Milliseconds(0.12345))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("{answers} answers differ", "3 of 20 answers differ"),
        ("{answers.part}/{answers.of}", "3/20"),
        ("relative error {error}", "relative error 0.012"),
        ("{error:.1e}", "1.2e-02"),
        ("{milliseconds} ms, {milliseconds:.3g}", "0.12 ms, 0.123"),
        ("{error}, rounding explains {floor}", ""),
        ("{accuracy.part}", ""),
        ("", ""),
    ],
)
def test_words_with_a_figure_that_is_missing_are_left_out(words: str, told: str) -> None:
    assert MEASURED.told(words) == told


def test_a_figure_that_nobody_knows_is_a_mistake() -> None:
    with pytest.raises(AttributeError):
        MEASURED.told("{eror}")


def test_what_is_no_number_has_words() -> None:
    odd = Figures(error=Measure(math.inf), floor=Measure(math.nan), milliseconds=Milliseconds(12.34))
    assert odd.told("{error}, {floor}, {milliseconds}") == "infinite, not a number, 12.3"


def test_what_ran_alone_has_its_times() -> None:
    seconds = TimeStatistics(
        count=4, mean=0.002, std=0.0, median=0.001, q05=0.001, q95=0.004, minimum=0.001, maximum=0.004
    )
    found = figures_of(None, Ran(accuracy=(7, 9), times=seconds))
    assert found.told("{accuracy}, {milliseconds:.2f} ms, {times.count} batches") == "7 of 9, 1.00 ms, 4 batches"
    assert found.told("{error}") == found.told("{answers}") == ""

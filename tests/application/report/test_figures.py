"""Figures of a row, in the digits that a form asks for."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from conrepair.application.report.figures import Figures, Measure, Milliseconds, Share, figures_of, in_a_sentence
from conrepair.application.report.result import Ran
from conrepair.ground.metrics.statistics import TimeStatistics
from conrepair.verdicts.evaluate.verdict import Verdict

MEASURED = Figures(answers=Share(3, 20), error=Measure(0.012345), milliseconds=Milliseconds(0.12345))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("{answers} answers differ", "3 of 20 answers differ"),
        ("{answers.part}/{answers.of}", "3/20"),
        ("relative error {error}", "relative error 1.2 %"),
        ("{error:.1e}", "1.2e-02"),
        ("{milliseconds} ms, {milliseconds:.3g}", "0.12 ms, 0.123"),
        ("{error}, rounding error {floor}", ""),
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


def sentence(
    verdict: Verdict, error: float, floor: float = 1e-7, *, differ: int | None = None, outputs: int = 1
) -> str:
    """Of 32 samples; `differ` of the predictions differ, of an output that's no scores where that's None."""
    worst = SimpleNamespace(
        verdict=verdict,
        error=SimpleNamespace(relative_l2=error, mismatched=0),
        floor=floor,
        answers=None if differ is None else SimpleNamespace(samples=32, top1_differs=differ),
        pair=SimpleNamespace(reference="boxes"),
    )
    return in_a_sentence(SimpleNamespace(worst=worst, outputs=(worst,) * outputs))  # type: ignore[arg-type]


def test_figures_are_joined_in_a_sentence() -> None:
    told = sentence(Verdict.FAULTY, 0.005, 5e-7, differ=0)
    assert told == "Predictions: all 32 the same. Outputs: off by 0.50 %, 10,000 times more than rounding."
    told = sentence(Verdict.FAULTY, 1.25, differ=3, outputs=2)
    assert told.startswith(
        "Predictions: 3 of 32 differ. Outputs: the worst of 2, `boxes`, is off by 120 %, 12,000,000"
    )
    assert in_a_sentence(None) == ""


@pytest.mark.parametrize(
    ("verdict", "error", "floor", "told"),
    [
        (Verdict.EQUIVALENT, 0.0, 1e-7, "the same"),
        (Verdict.EQUIVALENT, 5e-8, 1e-7, "off by less than 0.0001 %, within rounding error"),
        (Verdict.EQUIVALENT, 2e-6, 1e-7, "off by 0.00020 %, within tolerance"),
        (Verdict.NOISE, 4e-4, 1e-4, "off by 0.040 %, within rounding error"),
        (Verdict.QUANTIZED, 0.02, 1e-7, "off by 2.0 %, within what quantization is allowed"),
        (Verdict.FAULTY, 2e-4, 1e-4, "off by 0.020 %"),
        (Verdict.FAULTY, 2e-5, 1e-4, "off by 0.0020 %"),
        (Verdict.FAULTY, 0.5, 0.0, "off by 50 %"),
        (Verdict.FAULTY, 82.0, 0.0, "off by 82 times their size"),
        (Verdict.FAULTY, math.nan, 1e-7, "off by not a number"),
    ],
)
def test_an_error_is_told_beside_what_is_allowed(verdict: Verdict, error: float, floor: float, told: str) -> None:
    assert sentence(verdict, error, floor) == f"Outputs: {told}."

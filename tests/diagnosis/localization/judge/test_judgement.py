"""Floors, margins, and what is inherited."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.judge.judgement import Judged, acquit_unread_bodies, judge_cut
from conrepair.diagnosis.localization.run.measurement import Cut
from conrepair.diagnosis.localization.run.reference import RoundingFloor
from conrepair.ground.metrics.running_error import RunningError

VALUES = np.random.default_rng(0).normal(size=4000)
PAIR = Pair("s", "t", layouts((2, 3), (2, 3))[0], 1.0, "")
EPSILON = 2.0**-23


def error(relative: float) -> RunningError:
    result = RunningError()
    result.add(VALUES, VALUES * (1 + relative))
    return result


def judged(
    introduced: float, full: float, disturbed: float = 0.0, other: float | None = None, **options: object
) -> Judged:
    cut = Cut(PAIR, error(introduced), error(full), RoundingFloor(disturbed, other))
    settings = {"operators": 1, "precision": "float32", "margin": 10.0} | options
    return judge_cut(cut, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("introduced", "disturbed", "other", "guilty"),
    [
        (1e-2, 0.0, None, True),
        (1e-6, 0.0, None, False),
        (1e-4, 1e-6, None, True),
        (1e-4, 2e-5, None, False),  # what's read is worth no more digits
        (1e-4, 0.0, 5e-5, False),  # another correct library differs as much
        (1e-2, math.inf, None, True),  # what wasn't a number any more says nothing
        (1e-2, 0.0, 0.5, True),  # one that differs by half is no witness
        (0.0, 0.0, None, False),
        (math.inf, 1e-2, None, True),
    ],
)
def test_guilty_is_what_is_above_the_floor(
    introduced: float, disturbed: float, other: float | None, guilty: bool
) -> None:
    assert judged(introduced, introduced, disturbed, other).guilty is guilty


def test_the_floor_grows_with_the_operators_and_shrinks_for_nobody() -> None:
    one, hundred = judged(1e-5, 1e-5).floor, judged(1e-5, 1e-5, operators=100).floor
    assert one == pytest.approx(8 * EPSILON)
    assert hundred == pytest.approx(10 * one)
    assert judged(1e-5, 1e-5, disturbed=1e-3).floor == 1e-3
    assert judged(1e-5, 1e-5, operators=0).floor == one


@pytest.mark.parametrize(("precision", "bits"), [("float16", 10), ("bfloat16", 7)])
def test_what_half_precision_explains_is_no_fault_where_it_was_meant(precision: str, bits: int) -> None:
    relative = 2.0**-bits
    assert judged(relative, relative).guilty
    assert not judged(relative, relative, precision=precision).guilty
    assert judged(0.5, 0.5, precision="float16").guilty


def test_the_margin_is_the_users() -> None:
    assert judged(5e-6, 5e-6, margin=1.0).guilty
    assert not judged(5e-6, 5e-6, margin=10.0).guilty


def test_a_full_run_that_gives_the_sources_values_is_right() -> None:
    assert not judged(0.5, 1e-7).guilty
    assert not judged(0.5, 0.01).guilty  # the cut isn't what it's taken for
    assert judged(0.5, 0.1).guilty


@pytest.mark.parametrize(
    ("introduced", "full", "share"), [(0.0, 0.2, 1.0), (0.1, 0.2, 0.5), (0.3, 0.2, 0.0), (0.0, 0.0, 0.0)]
)
def test_what_was_inherited(introduced: float, full: float, share: float) -> None:
    assert judged(introduced, full).inherited == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize(("introduced", "guilty"), [(0.5, False), (0.69, False), (0.75, True), (3.0, True)])
def test_no_bit_width_excuses_half_noise(introduced: float, guilty: bool) -> None:
    """However much the bits explain: four times that, and an error of 0.7 at most."""
    assert judged(introduced, introduced, quantization=0.5).guilty is guilty
    assert judged(0.1, 0.1, quantization=0.01).guilty


@pytest.mark.parametrize(
    ("introduced", "full", "weights", "guilty", "tells"),
    [
        (0.02, 0.02, 0.0, False, True),
        (0.17, 0.5, 0.0, False, True),
        (0.18, 0.5, 0.0, False, False),
        (0.5, 0.1, 0.0, False, True),  # the full run shows that it's right
        (0.5, 0.5, 0.0, True, True),
        (0.3, 0.3, 0.08, False, True),  # four bits: each number is compared
        (0.3, 0.3, 0.07, False, False),
    ],
)
def test_what_passes_with_a_large_error_tells_nothing(
    introduced: float, full: float, weights: float, guilty: bool, tells: bool
) -> None:
    cut = Cut(PAIR, error(introduced), error(full))
    assert Judged(cut, introduced, full, 0.5, guilty, weights=weights).tells is tells


def test_a_network_in_few_bits_is_judged_by_all_elements() -> None:
    """A few large values take the bits of all others: that's what was asked for."""
    values = np.random.default_rng(1).normal(size=4000).astype(np.float32)
    values[:40] *= 1e6
    other = values.copy()
    other[40:] *= 1.5
    full = RunningError()
    full.add(values, other)
    assert full.error > 0.4
    assert full.relative_l2 < 1e-4
    cut = Cut(PAIR, full, full)
    settings = {"operators": 1, "precision": "float32", "margin": 10.0}
    assert judge_cut(cut, **settings).guilty  # type: ignore[arg-type]
    assert not judge_cut(cut, quantization=1e-3, **settings).guilty  # type: ignore[arg-type]


@pytest.mark.parametrize(("times", "guilty"), [(19.7, True), (20.3, False)])
def test_twenty_times_the_full_runs_error_is_that_of_another_place(times: float, guilty: bool) -> None:
    assert judged(0.5, 0.5 / times).guilty is guilty


def in_a_row(*errors: str) -> list[bool]:
    """Whether each of some cuts, one read by the next, is guilty: right, wrong, or wrong in a body only ("tail")."""
    items = []
    for place, what in enumerate(errors):
        found = error(1e-2 if what == "wrong" else 1e-9)
        found.hidden = 1e-3 if what == "tail" else 0.0
        cut = Cut(replace(PAIR, target=f"t{place}"), found, found)
        items.append(judge_cut(cut, operators=1, precision="float32", margin=10.0))
    readers = {f"t{place}": [f"t{place + 1}"] for place in range(len(errors) - 1)}
    return [item.guilty for item in acquit_unread_bodies(items, readers)]


def test_a_body_that_nothing_tells_apart_is_no_fault() -> None:
    assert in_a_row("tail", "right") == [False, False]
    assert in_a_row("tail", "tail", "right", "wrong") == [False, False, False, True]
    assert in_a_row("tail", "wrong") == [True, True]
    assert in_a_row("tail", "tail", "wrong") == [True, True, True]  # moved on the way to what reads it


def test_what_no_reader_tells_apart_is_no_fault() -> None:
    assert in_a_row("wrong", "right") == [False, False]
    assert in_a_row("wrong", "right", "wrong") == [False, False, True]
    assert in_a_row("right", "wrong") == [False, True]  # an output

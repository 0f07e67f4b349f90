from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conrepair.ground.data.input_range import InputRange


def test_one_range_for_all() -> None:
    values = InputRange((3.0,), (5.0,), "Clip").draw(np.random.default_rng(0), (4, 200))
    assert values.dtype == np.float32
    assert 3 <= values.min() < 3.1
    assert 4.9 < values.max() <= 5


def test_a_range_for_each_place_along_an_axis() -> None:
    known = InputRange((0.0, 100.0), (1.0, 200.0), "Normalization", axis=-2)
    values = known.draw(np.random.default_rng(0), (7, 2, 50))
    assert (values[:, 0].max() <= 1, values[:, 1].min() >= 100) == (True, True)
    assert known.for_all() == InputRange((0.0,), (200.0,), "Normalization")


def test_whole_numbers_reach_both_ends() -> None:
    assert {*InputRange((0.0,), (3.0,), "a table", whole=True).draw(np.random.default_rng(0), (500,))} == {0, 1, 2, 3}


def test_a_mask_is_ones_then_zeros() -> None:
    known = InputRange((0.0,), (1.0,), "Equal", whole=True, mask=True)
    rows = np.stack([known.draw(np.random.default_rng(seed), (10,)) for seed in range(50)])
    assert (np.diff(rows, axis=1) <= 0).all()
    assert rows[:, 0].all(), "a row that's masked out as a whole has no answer"
    assert not rows.all(), "a mask of ones only masks nothing"


def test_masks_that_are_not_usual_come_in_their_turns() -> None:
    known = InputRange((0.0,), (1.0,), "Equal", whole=True, mask=True, blank=True)
    generator = np.random.default_rng(0)
    front, holes, blank = (known.draw(generator, (4, 20), turn=turn) for turn in (1, 3, 7))
    assert (np.diff(front, axis=1) >= 0).all()
    assert not front.all()
    assert (np.diff(holes, axis=1) > 0).any(axis=1).all()
    assert not blank.any()
    assert replace(known, blank=False).draw(generator, (4, 20), turn=7).any(axis=1).all()
    assert [known.draw(generator, (1,), turn=turn).item() for turn in range(4)] == [1, 0, 1, 0]


def test_numbers_that_a_file_compares_with_are_drawn() -> None:
    known = InputRange((-1.0,), (1.0,), "Greater", values=((0.5,),))
    drawn = known.draw(np.random.default_rng(0), (400,))
    assert 60 < np.count_nonzero(drawn == np.float32(0.5)) < 140
    listed = InputRange((3.0,), (9.0,), "OneHotEncoder", whole=True, values=((3.0, 9.0),), listed=True)
    assert {*listed.draw(np.random.default_rng(0), (100,)).tolist()} == {3, 9}


def test_words() -> None:
    assert str(InputRange((0.0,), (255.0,), "Rescaling")) == "0 to 255 (Rescaling)"
    assert str(InputRange((0.0,) * 5, (1.0,) * 5, "Sub", axis=-1)).startswith(
        "0 to 1, 0 to 1, 0 to 1, ... (5 ranges)"
    )


def test_what_is_ordinary_where_only_a_calibration_says_it() -> None:
    for low, high, drawn in (
        (-0.3, 0.29, (-1, 1)),
        (-3.4, 3.6, (-1, 1)),
        (0, 0.3, (0, 1)),
        (0, 255, (0, 255)),
        (-128, 127, (-128, 127)),
    ):
        found = InputRange((low,), (high,), "how it's quantized", calibrated=True).ordinary(-1, 1)
        assert (found.low[0], found.high[0], found.calibrated) == (*drawn, True)


def test_what_no_choice_of_words_explains() -> None:
    one, other = InputRange((0.0,), (255.0,), "Rescaling"), InputRange((-3.0,), (251.0,), "how it's quantized")
    assert not one.differs(other)
    assert one.differs(InputRange((0.0,), (1.0,), "how it's quantized"))


@pytest.mark.parametrize(
    ("low", "high", "cuts"), [(0, 255, 0), (-1, 254, 0), (-30, 225, 1), (0, 200, 0), (-400, 0, 1)]
)
def test_a_grid_that_is_wide_enough_and_lies_elsewhere_cuts_values_off(low: float, high: float, cuts: int) -> None:
    grid = InputRange((low,), (high,), "how it's quantized", calibrated=True)
    assert InputRange((0.0,), (255.0,), "Rescaling").differs(grid) == bool(cuts)


def test_positions_count_on_as_far_as_a_table_reaches() -> None:
    found = InputRange((8.0,), (10.0,), "its name", whole=True, counts=True)
    drawn = found.draw(np.random.default_rng(0), (2, 4))
    np.testing.assert_array_equal(drawn, [[8, 9, 10, 10]] * 2)
    assert found.draw(np.random.default_rng(0), ()).shape == ()
    assert str(found) == "positions from 8 on (its name)"

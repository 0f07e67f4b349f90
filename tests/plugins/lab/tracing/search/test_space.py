"""Points of the cube and what they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import UsageError
from conrepair_lab.tracing.search.space import space_of

X = TensorSpec("x", ("n", 20), "float32")
IDS = TensorSpec("ids", (1, 4), "int64", high=9)


def drawn(count: int, **options: object) -> np.ndarray:
    space = space_of([X], **options)  # type: ignore[arg-type]
    points = np.random.default_rng(0).uniform(-1, 1, (count, space.size))
    return np.stack([space.feeds(point)["x"][0] for point in points])


def test_all_magnitudes_are_reached_in_whole_rows_and_beside_others() -> None:
    values = np.abs(drawn(300))
    assert values.max() <= 5
    for largest in (1e-3, 1e-5, 1e-7, 1e-9):
        rows = values.max(axis=1)
        assert np.mean((rows < largest) & (rows > largest / 1000)) > 0.02
    assert np.mean(values > 0.5) > 0.2
    mixed = (values.max(axis=1) > 0.5) & (values.min(axis=1) < 1e-5)
    assert np.mean(mixed) > 0.1


def test_rows_whose_elements_are_nearly_the_same_are_reached() -> None:
    values = drawn(300).astype(np.float64)
    ratio = values.std(axis=1) / np.abs(values.mean(axis=1))
    assert np.mean((ratio < 1e-3) & (ratio > 0) & (np.abs(values.mean(axis=1)) > 0.1)) > 0.02


def test_the_middle_of_the_cube_is_zero_and_its_ends_are_the_range() -> None:
    space = space_of([X], low=-2, high=3)
    point = np.zeros(space.size)
    assert (space.feeds(point)["x"] == 0).all()
    point[3:5] = 1, -1
    assert space.feeds(point)["x"][0, :3].tolist() == [3, -2, 0]


def test_coordinates_are_monotone() -> None:
    space = space_of([TensorSpec("x", (1, 1), "float64")])
    values = [space.feeds(np.array([0, 0, 0, z]))["x"].item() for z in np.linspace(-1, 1, 2001)]
    assert (np.diff(values) > 0).all()


@pytest.mark.parametrize(("low", "high"), [(0, 1), (2, 3), (-7, -6), (-1, 0)])
def test_ranges_beside_zero_are_kept_and_filled(low: float, high: float) -> None:
    values = drawn(200, low=low, high=high)
    assert values.min() >= low
    assert values.max() <= high
    assert values.max() - values.min() > 0.95
    assert np.mean((values > low) & (values < high)) > 0.3


def test_integers_go_with_their_data_row() -> None:
    data = [{"x": np.full((1, 20), row, np.float32), "ids": np.full((1, 4), row)} for row in (1, 100)]
    space = space_of([X, IDS], around=data)
    feeds = [space.feeds(point) for point in np.random.default_rng(0).uniform(-1, 1, (20, space.size))]
    assert {row["ids"][0, 0] for row in feeds} == {1, 100}
    assert all((np.abs(row["x"] - row["ids"][0, 0]) <= row["ids"][0, 0] / 2).all() for row in feeds)
    assert space.controls == (0, 1, 2, 3)


def test_data_rows_are_varied_around() -> None:
    data = [{"x": np.full((1, 20), 100, np.float32)}, {"x": np.full((1, 20), -1, np.float32)}]
    values = drawn(200, around=data)
    near = np.abs(values - 100) <= 50
    assert (near | (np.abs(values + 1) <= 0.5)).all()
    assert 0.3 < near.mean() < 0.7


def test_each_input_has_coordinates_of_its_own_and_integers_stay() -> None:
    space = space_of([X, IDS, TensorSpec("w", (3, 2), "float16")], low=-0.25, high=0.25)
    feeds = [space.feeds(point) for point in np.random.default_rng(0).uniform(-1, 1, (20, space.size))]
    assert {name: (array.shape, array.dtype.name) for name, array in feeds[0].items()} == {
        "x": ((1, 20), "float32"),
        "ids": ((1, 4), "int64"),
        "w": ((3, 2), "float16"),
    }
    assert max(np.abs(row["w"]).max() for row in feeds) == 0.25
    assert all((row["ids"] == feeds[0]["ids"]).all() for row in feeds)
    assert [space.size, space.controls] == [3 + 20 + 3 + 6, (0, 1, 2, 23, 24, 25)]


def test_what_cannot_be_searched_is_said() -> None:
    with pytest.raises(UsageError, match=r"no input holds floating point numbers \(inputs: ids: int64\[1, 4\]\)"):
        space_of([IDS])
    with pytest.raises(UsageError, match=r"x: the range from 3 to 2 is empty: low must be below high"):
        space_of([X], low=3, high=2)

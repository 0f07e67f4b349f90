"""Layouts against transposes and reshapes that numpy made."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.diagnosis.localization.align.layout import Layout, layouts
from conrepair.diagnosis.localization.faces.attributes import axis_map

Shape = tuple[int, ...]
sizes = st.integers(1, 4)


def numbered(shape: Shape) -> np.ndarray:
    return np.arange(math.prod(shape)).reshape(shape)


def with_ones(shape: Shape, places: list[int]) -> Shape:
    """Axes of length 1 put in, and those that were there left out first."""
    result = [size for size in shape if size != 1]
    for place in places:
        result.insert(min(place, len(result)), 1)
    return tuple(result)


def merged(shape: Shape, joints: list[bool]) -> Shape:
    result: list[int] = []
    for size, joint in zip(shape, [False, *joints], strict=False):
        if joint and result:
            result[-1] *= size
        else:
            result.append(size)
    return tuple(result)


@st.composite
def arranged(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """An array, and the same transposed, with axes merged, and with other axes of length 1."""
    shape = tuple(draw(st.lists(sizes, min_size=1, max_size=5)))
    axes = draw(st.permutations(range(len(shape))))
    joints = draw(st.lists(st.booleans(), min_size=len(shape) - 1, max_size=len(shape) - 1))
    ones = draw(st.lists(st.integers(0, 5), max_size=2))
    array = numbered(shape)
    turned = array.transpose(axes)
    return array, turned.reshape(with_ones(merged(turned.shape, joints), ones) or (1,))


@given(arranged(), st.booleans())
def test_the_true_layout_is_always_among_those_found(pair: tuple[np.ndarray, np.ndarray], turned: bool) -> None:
    """Both ways round: the target may have the finer axes."""
    source, target = reversed(pair) if turned else pair
    found = [layout.to_target(source) for layout in layouts(source.shape, target.shape)]
    assert any(np.array_equal(item, target) for item in found)


@given(arranged(), st.booleans())
def test_every_layout_is_undone_and_says_where_elements_go(pair: tuple[np.ndarray, np.ndarray], turned: bool) -> None:
    one, two = (item.shape for item in (reversed(pair) if turned else pair))
    source = numbered(one)
    flat = np.arange(source.size)
    for layout in layouts(one, two):
        target = layout.to_target(source)
        assert target.shape == two
        assert sorted(target.flat) == list(range(source.size))
        np.testing.assert_array_equal(layout.to_source(target), source)
        np.testing.assert_array_equal(target.reshape(-1)[layout.positions(flat)], source.reshape(-1))
        assert layout.is_plain == np.array_equal(target.reshape(-1), flat)


@given(arranged())
def test_no_layout_twice(pair: tuple[np.ndarray, np.ndarray]) -> None:
    one, two = (item.shape for item in pair)
    maps = [tuple(layout.to_target(numbered(one)).flat) for layout in layouts(one, two)]
    assert len(set(maps)) == len(maps)


@pytest.mark.parametrize(
    ("source", "target", "count"),
    [
        ((3, 3, 3), (3, 3, 3), 6),
        ((2, 3, 3), (2, 3, 3), 2),
        ((1, 4, 4, 4), (1, 4, 4, 4), 6),
        ((1, 3, 4, 5), (1, 4, 5, 3), 1),
        ((2, 3, 4, 5), (2, 60), 6),  # the last three merged in any order
        ((2, 4, 4), (2, 16), 2),
        ((6,), (2, 3), 2),  # of either order
        ((2, 3), (5,), 0),
        ((7,), (7, 1, 1), 1),
        ((), (1,), 1),
    ],
)
def test_equal_sizes_are_ambiguous_and_all_ways_are_named(source: Shape, target: Shape, count: int) -> None:
    assert len(layouts(source, target)) == count


def test_the_usual_ones_come_first() -> None:
    """As it is, then channels moved to the other end."""
    cube = [layout.axes for layout in layouts((4, 4, 4), (4, 4, 4))]
    assert cube[0] == (0, 1, 2)
    assert set(cube[1:3]) == {(1, 2, 0), (2, 0, 1)}


@given(arranged())
def test_axes_that_are_kept_are_mapped(pair: tuple[np.ndarray, np.ndarray]) -> None:
    """An index along an axis of the source is the same index along that axis of the target."""
    source, target = pair
    layout = next(
        item for item in layouts(source.shape, target.shape) if np.array_equal(item.to_target(source), target)
    )
    for ours, theirs in axis_map(layout).items():
        if source.shape[ours] != target.shape[theirs]:
            continue  # an axis that was merged with others of length 1 only
        for index in range(source.shape[ours]):
            np.testing.assert_array_equal(
                np.sort(np.take(source, index, ours), axis=None), np.sort(np.take(target, index, theirs), axis=None)
            )


def test_axes_of_pictures() -> None:
    to_last = next(item for item in layouts((2, 3, 4, 5), (2, 4, 5, 3)) if not item.is_plain)
    assert axis_map(to_last) == {0: 0, 1: 3, 2: 1, 3: 2}
    cube = next(item for item in layouts((1, 4, 4, 4), (1, 4, 4, 4)) if item.axes == (1, 2, 0))
    assert axis_map(cube) == {0: 0, 1: 3, 2: 1, 3: 2}
    assert axis_map(Layout((2, 3), (2, 3), (0, 1), (2, 3))) == {0: 0, 1: 1}


def test_many_axes_are_taken_as_they_are() -> None:
    """720 orders of six axes would be tried for every pair of tensors."""
    shape = (2, 2, 2, 2, 2, 2)
    assert [layout.is_plain for layout in layouts(shape, shape)] == [True]


@pytest.mark.parametrize(
    ("source", "target"), [((4, 0), (4, 0)), ((4, 0), (0, 4)), ((0,), (4, 0)), ((2, 0, 3), (6, 0))]
)
def test_tensors_without_elements_have_layouts_too(source: Shape, target: Shape) -> None:
    for layout in layouts(source, target):
        assert layout.to_target(np.zeros(source)).shape == target

"""Views of numbers in a row: what NumPy gives of the same moves."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.canonical.views import View, aligned, axis_of, whole
from conrepair.ground.graph.layer_graph import Array


def seen(view: View, value: Array) -> Array:
    """The numbers of a view, by its atoms."""
    strides = [stride * value.itemsize for _, stride in view.atoms]
    sizes = [size for size, _ in view.atoms]
    return np.lib.stride_tricks.as_strided(value.reshape(-1), sizes, strides).reshape(view.shape)


@st.composite
def moves(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[str, tuple[int, ...]]]]:
    """A shape, and reshapes and transpositions one after the other."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4)))
    found, now = list[tuple[str, tuple[int, ...]]](), shape
    for _ in range(draw(st.integers(1, 5))):
        if draw(st.booleans()):
            perm = tuple(draw(st.permutations(range(len(now)))))
            now = tuple(now[axis] for axis in perm)
            found.append(("transpose", perm))
        else:
            left, sizes = math.prod(now), list[int]()
            while left > 1:
                sizes.append(draw(st.sampled_from([size for size in range(2, left + 1) if left % size == 0])))
                left //= sizes[-1]
            now = tuple(draw(st.permutations([*sizes, 1])))
            found.append(("reshape", now))
    return shape, found


@given(moves())
def test_a_view_has_the_numbers_that_numpy_gives(
    drawn: tuple[tuple[int, ...], list[tuple[str, tuple[int, ...]]]],
) -> None:
    shape, steps = drawn
    value = np.arange(math.prod(shape))
    view, array = whole(0, shape), value.reshape(shape)
    for step, how in steps:
        moved = view.reshaped(how) if step == "reshape" else view.transposed(how)
        if moved is None:  # an axis ends within an atom: a value of its own
            return
        view, array = moved, array.reshape(how) if step == "reshape" else array.transpose(how)
        assert view.shape == array.shape
        assert np.array_equal(seen(view, value), array)


@given(moves(), moves())
def test_views_are_equal_if_their_numbers_are(
    one: tuple[tuple[int, ...], list[tuple[str, tuple[int, ...]]]],
    two: tuple[tuple[int, ...], list[tuple[str, tuple[int, ...]]]],
) -> None:
    value, views = np.arange(math.prod(one[0])), list[View]()
    for steps in (one[1], [] if math.prod(two[0]) != value.size else two[1]):
        view: View | None = whole(0, one[0])
        for step, how in steps:
            if view is not None and (step == "reshape" or len(how) == len(view.shape)):
                view = view.reshaped(how) if step == "reshape" else view.transposed(how)
        views += [] if view is None else [view]
    if len(views) == 2:
        alike = np.array_equal(seen(views[0], value).reshape(-1), seen(views[1], value).reshape(-1))
        assert alike == (views[0].atoms == views[1].atoms)


def test_channels_that_are_last_are_those_that_are_first() -> None:
    first = whole(0, (2, 3, 4, 5))
    last = first.transposed((0, 2, 3, 1))
    assert last is not None
    assert aligned(last, (2, 3, 4, 5)) == (0, 2, 3, 1)
    assert last.transposed((0, 3, 1, 2)) == first


def test_part_of_a_transposed_view() -> None:
    value = np.arange(24).reshape(2, 3, 4)
    view = whole(0, (2, 3, 4)).transposed((2, 0, 1))
    assert view is not None
    part = view.resized(1, axis_of((2, 3, 4), 1), 2)
    assert part is not None
    assert np.array_equal(seen(part, np.ascontiguousarray(value[:, :2])), value[:, :2].transpose(2, 0, 1))

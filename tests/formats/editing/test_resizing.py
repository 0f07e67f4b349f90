"""What shapes become when the sizes of what's seen in them change."""

from __future__ import annotations

import math

from hypothesis import assume, given
from hypothesis import strategies as st

from conrepair.formats.editing.resizing import resized

_SIZES = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=5)


@given(_SIZES, st.data())
def test_axes_that_are_put_together_have_the_product(sizes: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whatever is known of a merge is right: it's what merging the new axes gives."""
    ends = sorted(data.draw(st.sets(st.integers(1, len(sizes) - 1)) if len(sizes) > 1 else st.just(set())))
    groups = [sizes[begin:end] for begin, end in zip([0, *ends], [*ends, len(sizes)], strict=True)]
    before, now = (tuple(pair[side] for pair in sizes) for side in (0, 1))
    merged, wanted = (tuple(math.prod(pair[side] for pair in group) for group in groups) for side in (0, 1))
    found = resized(before, now, merged)
    if all(size > 1 for size in before):
        assert found == wanted
    elif found is not None:  # where an axis of one comes to lie among others, can't always be told
        assert math.prod(found) == math.prod(now)


@given(st.integers(2, 6), st.integers(2, 6), st.integers(1, 4), st.integers(2, 5), st.integers(2, 6))
def test_rows_and_columns_that_were_put_together(before: int, now: int, batch: int, channels: int, wide: int) -> None:
    assume(before * wide != now * (wide + 1))
    merged = [((before, now), (wide, wide + 1))]
    found = resized(
        (batch, channels, before * wide),
        (batch, channels, now * (wide + 1)),
        (batch, channels, before, wide),
        merged,
    )
    assert found == (batch, channels, now, wide + 1)


def test_windows_grow_in_number() -> None:
    assert resized((1, 3, 24, 24), (1, 3, 96, 96), (1, 3, 6, 4, 6, 4)) == (1, 3, 24, 4, 24, 4)
    assert resized((1, 24, 24, 8), (1, 48, 24, 8), (1, 6, 4, 6, 4, 8)) == (1, 12, 4, 6, 4, 8)


def test_what_cant_be_told_isnt_guessed() -> None:
    assert resized((1, 4, 16), (1, 4, 64), (1, 4, 4, 4)) is None  # is it 8 x 8, or 16 windows of 4?
    assert resized((4, 6), (4, 7), (3, 8)) is None  # torn apart


def test_a_batch_that_was_one() -> None:
    assert resized((1, 16, 4, 4), (5, 16, 4, 4), (1, 256)) == (5, 256)
    assert resized((1, 16, 4), (5, 16, 4), (16, 4)) == (80, 4)

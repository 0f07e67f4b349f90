"""Numbers for sizes that a file leaves open."""

from __future__ import annotations

import itertools

import pytest

from conrepair.ground.data.symbolic_sizes import (
    declaration,
    other_shapes,
    possible_sizes,
    trial_shapes,
    with_sizes_of,
    with_stated_sizes,
)
from conrepair.ground.data.tensor_spec import Dimension, SizeRange, TensorSpec, merge_declared


def inputs(*shapes: tuple[Dimension, ...], ranges: tuple[SizeRange, ...] = ()) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(f"x{place}", shape, "float32", ranges=ranges) for place, shape in enumerate(shapes))


def first_two(*shapes: tuple[Dimension, ...], ranges: tuple[SizeRange, ...] = ()) -> list[object]:
    specs = inputs(*shapes, ranges=ranges)
    first = next(trial_shapes(specs))
    return [first, next(other_shapes(specs, first))]


def test_usual_sizes() -> None:
    assert first_two(("n", 3, "height", "n")) == [((2, 3, 64, 2),), ((3, 3, 128, 3),)]
    assert list(trial_shapes(inputs((4, 5)))) == [((4, 5),)]


@pytest.mark.parametrize(
    ("low", "high", "first", "other"),
    [(1, 64, 64, 32), (10, 20, 20, 10), (100, None, 100, 200), (100, 120, 100, 101), (33, 64, 64, 63), (7, 7, 7, 7)],
)
def test_sizes_lie_in_the_stated_range(low: int, high: int | None, first: int, other: int) -> None:
    ranges = (SizeRange("s", low, high),)
    assert first_two(("n", "s"), ranges=ranges) == [((2, first),), ((3, other),)]


def test_each_trial_is_another_and_lies_in_the_range() -> None:
    specs = inputs(("n", "s"), ranges=(SizeRange("s", 3, 40),))
    sizes = [shape[1] for (shape,) in trial_shapes(specs)]
    assert len(set(sizes)) == len(sizes) > 3
    assert all(3 <= size <= 40 for size in sizes)


def test_sizes_that_are_computed_from_one_symbol_fit_together() -> None:
    ranges = (SizeRange("half", 2, 32), SizeRange("past", 1, 10))
    shapes: list[tuple[Dimension, ...]] = [("n", "2*half"), ("n", "past"), ("n", "2*half + past - 1")]
    specs = inputs(*shapes, ranges=ranges)
    for found in itertools.islice(trial_shapes(specs), 5):
        (_, doubled), (_, past), (_, both) = found
        assert doubled % 2 == 0
        assert (doubled <= 64, past <= 10, both) == (True, True, doubled + past - 1)
    first, other = first_two(*shapes, ranges=ranges)
    assert isinstance(first, tuple)
    assert isinstance(other, tuple)
    assert all(a[1] != b[1] for a, b in zip(first, other, strict=True))


def test_what_else_is_open_varies_where_one_size_is_fixed() -> None:
    ranges = (SizeRange("h", 20, 20),)
    assert first_two(("n", "h", "w"), ranges=ranges) == [((2, 20, 64),), ((3, 20, 128),)]


def test_only_bounded_sizes_are_chosen() -> None:
    specs = inputs(
        ("n", "s", "free"), ranges=(SizeRange("n", 1, 8), SizeRange("s", 2, 48), SizeRange("free", 1, None))
    )
    assert [spec.shape for spec in with_stated_sizes(specs)] == [("n", 48, "free")]


DECODER: dict[str, tuple[Dimension, ...]] = {
    "input_ids": ("batch_size", "sequence_length"),
    "attention_mask": ("batch_size", "past_sequence_length + sequence_length"),
    "past.0.key": ("batch_size", 2, "past_sequence_length", 8),
    "past.0.value": ("batch_size", 2, "past_sequence_length", 8),
}


def lengths(**others: tuple[Dimension, ...]) -> list[tuple[Dimension, ...]]:
    """Chosen for a decoder: of ids, mask and cache."""
    shapes = DECODER | others
    specs = [TensorSpec(name, shape, "float32" if "past" in name else "int64") for name, shape in shapes.items()]
    found = list(possible_sizes(specs))
    assert all(spec.shape[0] == shapes[spec.name][0] for one in found for spec in one)
    assert len({str(one) for one in found}) == len(found) < 64
    return [(one[0].shape[1], one[1].shape[1], one[2].shape[2]) for one in found if one[2].shape == one[3].shape]


def test_sums_that_a_file_states_are_kept() -> None:
    assert lengths()[0] == (17, 25, 8)
    assert all(isinstance(mask, int) and mask == ids + past for ids, mask, past in lengths())  # type: ignore[operator]
    assert lengths(attention_mask=("batch_size", "past_sequence_length + 1"))[0] == (17, 9, 8)


def test_a_sum_that_a_file_calls_a_total_or_nothing_is_found() -> None:
    assert lengths(attention_mask=("batch_size", "total_sequence_length"))[0] == (17, 25, 8)
    unnamed = {
        name: tuple(size if isinstance(size, int) else "?" for size in shape) for name, shape in DECODER.items()
    }
    assert (16, 32, 16) in lengths(**unnamed)[:5]
    assert (1, 16, 16) in lengths(**unnamed)


def test_pictures_are_larger_than_sequences_are_long() -> None:
    assert [spec.shape for spec in next(possible_sizes(inputs(("n", 3, "h", "w"))))] == [("n", 3, 64, 65)]
    assert [spec.shape for spec in next(possible_sizes(inputs(("?", 3, "?", "?"), ("?", "?", 5))))] == [
        ("?", 3, 64, 65),
        ("?", 17, 5),
    ]
    assert [spec.shape for spec in next(possible_sizes(inputs(("n", "s"), ranges=(SizeRange("s", 2, 9),))))] == [
        ("n", 9)
    ]
    assert list(possible_sizes(inputs(("n", 4)))) == [inputs(("n", 4))]


def test_sizes_of_another_model_in_another_layout() -> None:
    pictures = TensorSpec("image", ("n", 3, "h", "w"), "float32")
    ids = TensorSpec("ids", ("n", "s"), "int64")
    others = (TensorSpec("ids", (1, 16), "int64"), TensorSpec("image", (1, 20, 30, 3), "float32"))
    assert [spec.shape for spec in with_sizes_of([pictures, ids], others)] == [("n", 3, 20, 30), ("n", 16)]
    assert with_sizes_of([ids], others[1:]) == (ids,)


def test_one_symbol_is_one_size_where_one_input_is_declared() -> None:
    specs = inputs(("n", "s"), ("n", "s", "?"), ("n", "?"))
    found = merge_declared(specs, [TensorSpec("x0", ("n", 32), "float32")])
    assert [spec.shape for spec in found] == [("n", 32), ("n", 32, "?"), ("n", "?")]
    found = merge_declared(specs, [TensorSpec("x2", ("n", 5), "float32")])
    assert [spec.shape for spec in found] == [("n", "s"), ("n", "s", "?"), ("n", 5)]


def test_a_declaration_fits_the_input() -> None:
    ids = TensorSpec("ids", ("s23", "2*half"), "int64", ranges=(SizeRange("half", 1, 6),))
    assert declaration(ids) == "--input ids=s23,12:int64"
    assert declaration(TensorSpec("x", (1, 3, "?", "?"), "float32")) == "--input x=1,3,224,224"


@pytest.mark.parametrize("text", ["*".join(["n"] * 100_000), "(" * 400 + "n" + ")" * 400, "9" * 5000, "9**9**9"])
def test_what_nobody_would_write_is_a_name(text: str) -> None:
    assert next(trial_shapes(inputs(("n", text)))) == ((2, 64),)


def test_a_division_by_nothing_is_no_size() -> None:
    assert next(trial_shapes(inputs(("n", "n//0")))) == ((2, 0),)

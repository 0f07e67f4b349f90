"""Where inputs and outputs have their samples."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.ground.data.sample_axes import OutputAxes, axes_as_fed, has_batch, sample_axes, with_axes_of
from conrepair.ground.data.tensor_spec import Dimension, TensorSpec, merge_declared

Shapes = tuple[tuple[Dimension, ...], ...]


def specs(*shapes: tuple[Dimension, ...]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(f"x{place}", shape, "float32") for place, shape in enumerate(shapes))


@pytest.mark.parametrize(
    ("shapes", "axes"),
    [
        ((("batch", 3, "height", "width"),), (0,)),
        ((("?", 3, "?", "?"),), (0,)),
        (((4, 3, 8, 8),), (0,)),
        ((("a", 3), ("b", "c")), (0, 0)),
        ((("time", "batch", 4), (2, "batch", 8)), (1, 1)),
        ((("T", "N", 4),), (1,)),
        ((("B", "N", 3),), (0,)),
        (((10, "batch", 4),), (1,)),
        ((("s27", "s53", 4), (2, "s53", 8)), (1, 1)),
        ((("?", "?", 4), (2, "?", 8)), (1, 1)),
        ((("seq_len", "x", 4),), (1,)),
        ((("s0", "s1"), ("s0", "s1 + s2"), ("s0", 4, "s2", 8)), (0, 0, 0)),
        ((("batch", "s"), ("rows", 4)), (0, 0)),
        ((("batch_size", "sequence_length"), ("sequence_length",)), (0, None)),
        ((("batch", 8), (2, "batch", 4), ()), (0, 1, None)),
        (((1, 3, "h", "w"), (2, 1, "h", "w")), (None, None)),
        (((10, 1, 4), (2, 1, 8)), (None, None)),
        ((("batch", 3), (1, 3)), (0, None)),
    ],
)
def test_the_axis_is_found_in_the_shapes(shapes: Shapes, axes: tuple[int | None, ...]) -> None:
    assert sample_axes(specs(*shapes)) == axes
    assert has_batch(specs(*shapes)) == (None not in axes)


def test_a_declared_batch_says_where_fixed_sizes_have_it() -> None:
    fixed = specs((10, 4, 4), (2, 4, 8))
    declared = [TensorSpec("x0", (10, "batch", 4), "float32"), TensorSpec("x1", (2, "batch", 8), "float32")]
    found = merge_declared(fixed, declared)
    assert [spec.shape for spec in found] == [(10, 4, 4), (2, 4, 8)]
    assert sample_axes(found) == (1, 1)


def test_fixed_sizes_have_it_where_another_model_does() -> None:
    named = specs(("time", "batch", 4), (2, "batch", 8))
    assert sample_axes(with_axes_of(specs((10, 4, 4), (2, 4, 8)), named)) == (1, 1)
    assert axes_as_fed(specs((10, 4, 4)), named[:1]) == {"x0": 1}
    assert axes_as_fed(specs((4, 10, 5)), named[:1]) == {"x0": 0}  # of other sizes, so of another order
    assert axes_as_fed(specs(("batch", "time", 4)), named[:1]) == {"x0": 0}
    assert axes_as_fed(named, specs((10, 1, 4), (2, 1, 8))) == {}  # complete feeds


def test_outputs_have_it_where_their_shapes_name_it_else_where_the_size_is() -> None:
    inputs = specs(("time", "batch", 4), (2, "batch", 8))
    outputs = (TensorSpec("y", ("time", 1, "batch", 5), "float32"), TensorSpec("z", ("?", "?", "?"), "float32"))
    axes = OutputAxes(inputs, outputs, {"x0": 1, "x1": 1})
    assert axes.of("y", (3, 1, 3, 5), 3) == 2
    assert (axes.of("z", (3, 3, 5), 3), axes.of("z", (4, 5, 3), 3), axes.of("z", (4, 5), 3)) == (1, 2, None)
    assert axes.in_front("y", np.zeros((7, 1, 3, 5)), 3).shape == (3, 7, 1, 5)
    plain = OutputAxes(specs(("batch", 4)), (TensorSpec("y", ("?", "?"), "float32"),), {"x0": 0})
    assert (plain.of("y", (3, 3), 3), plain.of("y", (4, 3), 3)) == (0, None)

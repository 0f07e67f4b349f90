"""Values drawn for one tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from conrepair.generate.tensors import Range, TensorType, numpy_type

__all__ = ["drawn_values"]


def drawn_values(made: TensorType, wanted: Range | None, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """Values of moderate size, of both signs where the type has signs.

    Args:
        made: Element type and sizes.
        wanted: What they must be; None for anything.
        generator: They come from here.

    Returns:
        An array of that type.
    """
    dtype = numpy_type(made.dtype)
    if wanted is not None:
        return _within(made, wanted, generator, dtype)
    if dtype.kind == "b":
        return np.asarray(generator.random(made.shape) < 0.5)
    if dtype.kind in "iu":
        return generator.integers(-8 if dtype.kind == "i" else 0, 9, made.shape).astype(dtype)
    return generator.uniform(-2.0, 2.0, made.shape).astype(dtype)


def _within(
    made: TensorType, wanted: Range, generator: np.random.Generator, dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    whole = dtype.kind in "iub"
    if wanted.distinct and made.shape:  # along the last axis
        span = np.arange(int(wanted.low), int(wanted.high) + 1)
        values = generator.permuted(np.broadcast_to(span, (*made.shape[:-1], span.size)), axis=-1)[
            ..., : made.shape[-1]
        ]
    elif whole:
        values = generator.integers(int(wanted.low), int(wanted.high) + 1, made.shape)
    else:
        values = generator.uniform(wanted.low, wanted.high, made.shape)
    if wanted.nonzero:
        values = np.where(values == 0, wanted.high, values)
    if wanted.ascending:
        values = np.sort(values, axis=-1)
    return np.asarray(values).astype(dtype)

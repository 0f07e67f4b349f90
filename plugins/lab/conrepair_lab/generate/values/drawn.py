"""Values drawn for one tensor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from conrepair_lab.generate.settings.tensors import Range, TensorType, numpy_type

_USUAL = 2.0


def drawn_values(
    made: TensorType, wanted: Range | None, generator: np.random.Generator, wish: tuple[float, float] | None = None
) -> np.ndarray[Any, Any]:
    """Values of moderate size, of both signs where the type has signs.

    Args:
        made: Element type and sizes.
        wanted: What they must be; None for anything.
        generator: They come from here.
        wish: What they should be between; None for anything.

    Returns:
        An array of that type.
    """
    dtype = numpy_type(made.dtype)
    if not made.elements:
        return np.zeros(made.shape, dtype)
    if wanted is not None:
        return _within(made, wanted, generator, dtype)
    if dtype.kind == "b":
        return np.asarray(generator.random(made.shape) < 0.5)
    if dtype.kind in "iu":
        return generator.integers(-8 if dtype.kind == "i" else 0, 9, made.shape).astype(dtype)
    low, high = _moderate(*wish) if wish is not None else (-_USUAL, _USUAL)
    return np.asarray(generator.uniform(low, high, made.shape)).astype(dtype)


def _moderate(low: float, high: float) -> tuple[float, float]:
    """The part of a range that is neither far from zero nor at its ends."""
    start = max(low, -_USUAL) if low <= _USUAL else low
    end = min(high, start + 2 * _USUAL)
    margin = (end - start) / 16
    return start + margin, end - margin


def _within(
    made: TensorType, wanted: Range, generator: np.random.Generator, dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    if wanted.overall:
        flat = TensorType(made.dtype, (made.elements,))
        return _within(flat, replace(wanted, overall=False), generator, dtype).reshape(made.shape)
    whole = wanted.whole or dtype.kind in "iub"
    low, high = np.asarray(wanted.low), np.asarray(wanted.high)
    if wanted.distinct and -made.rank <= wanted.axis < made.rank:
        length = made.shape[wanted.axis]
        span = np.arange(int(low), int(high) + 1)
        span = np.resize(span, max(span.size, length))  # twice where there are too few
        every = np.broadcast_to(span, (*np.delete(made.shape, wanted.axis), span.size))
        values = np.moveaxis(generator.permuted(every, axis=-1)[..., :length], -1, wanted.axis)
    elif wanted.rows:
        spans = high - low + 1
        places = generator.permutation(int(spans.prod()))[: made.elements // len(spans)]
        values = np.stack(np.unravel_index(places, spans), axis=-1).reshape(made.shape) + low
    elif whole:
        values = generator.integers(low.astype(int), high.astype(int) + 1, made.shape)
    else:
        values = np.asarray(generator.uniform(low, high, made.shape))
    if wanted.without:
        values = np.where(np.isin(values, wanted.without), wanted.high, values)
    if wanted.ascending:
        values = np.sort(values, axis=-1)
    return np.asarray(values).astype(dtype)

"""What goes wrong with numbers, whichever framework holds them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.common.injecting.fault import Array

__all__ = ["BIASES", "WEIGHTS"]

Change = Callable[[Array, np.random.Generator], Array]


def _filters_exchanged(array: Array, generator: np.random.Generator, axis: int) -> Array:
    if array.shape[axis] < 2:
        return array.copy()
    one, two = generator.permutation(array.shape[axis])[:2]
    order = np.arange(array.shape[axis])
    order[[one, two]] = order[[two, one]]
    return array.take(order, axis)


def _of_channel(array: Array, generator: np.random.Generator, axis: int) -> Array:
    changed = np.moveaxis(array.copy(), axis, 0)
    changed[generator.integers(len(changed))] *= -1
    return np.moveaxis(changed, 0, axis)


def _spoilt(array: Array, generator: np.random.Generator) -> Array:
    """A run of neighbouring numbers, as where a file was cut or read at another place."""
    flat = array.copy().reshape(-1)
    count = max(1, flat.size // 16)
    start = int(generator.integers(flat.size - count + 1))
    flat[start : start + count] = np.roll(flat[start : start + count], max(1, count // 2))
    return flat.reshape(array.shape)


def _in_steps(array: Array, levels: int) -> Array:
    step = np.abs(array).max() / levels or 1.0
    return (np.round(array / step) * step).astype(array.dtype)


WEIGHTS: dict[str, tuple[Callable[[Array, np.random.Generator, int], Array], str]] = {
    "two-filters-exchanged": (_filters_exchanged, "two output channels of {name} are exchanged"),
    "sign-of-a-channel": (_of_channel, "one output channel of {name} has the other sign"),
    "numbers-out-of-place": (lambda array, generator, _: _spoilt(array, generator), "numbers of {name} are moved"),
    "weights-in-six-bits": (lambda array, *_: _in_steps(array, 31), "the weights of {name} are rounded to six bits"),
    "weights-in-float16": (
        lambda array, *_: array.astype(np.float16).astype(array.dtype),
        "the weights of {name} went through float16",
    ),
    "weights-reversed": (
        lambda array, *_: array[..., ::-1].copy(),
        "the last axis of the weights of {name} runs back",
    ),
}
"""By name: given numbers, a generator and the axis of output channels; with words."""

BIASES: dict[str, tuple[Change, str]] = {
    "bias-lost": (lambda array, _: np.zeros_like(array), "the bias of {name} is zero"),
    "bias-negated": (lambda array, _: -array, "the bias of {name} is subtracted"),
    "bias-rolled": (lambda array, _: np.roll(array, 1), "the bias of {name} is its neighbours'"),
}
"""The same for biases."""

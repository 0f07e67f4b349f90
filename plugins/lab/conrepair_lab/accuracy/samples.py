"""The data that operators are measured with: all magnitudes, and sums of every conditioning."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import ml_dtypes
import numpy as np

from conrepair.ground.operators.record import Array

_SEED = 20
_BY_EXPONENT, _EVENLY, _PAIRS = 390, 50_000, 30_000
_ROWS, _IMAGES = 8, 2  # of each condition
_SPECIALS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5)

Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]


def _cancelling(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Terms that leave a ten-thousandth of their magnitudes' sum."""
    terms = random.normal(size=shape)
    half = shape[-1] // 2
    terms[..., half : 2 * half] = -terms[..., :half] * (1 + 1e-4 * terms[..., half : 2 * half])
    return random.permuted(terms, axis=-1)


CONDITIONS: Mapping[str, Draw] = {
    "of one sign": lambda random, shape: random.uniform(0.5, 1.5, shape),
    "of both signs": lambda random, shape: random.normal(size=shape),
    "that cancel": _cancelling,
    "far from zero": lambda random, shape: 1000 + random.normal(size=shape),
    "large": lambda random, shape: random.uniform(50, 200, shape),
}


def element(dtype: str) -> np.dtype[np.generic]:
    """The element type of a name: float16, bfloat16 or float32, whose truth float64 holds."""
    return np.dtype(getattr(ml_dtypes, dtype, dtype))


@functools.cache
def feed(name: str, dtype: str) -> Array:
    """The data of a name.

    Args:
        name: "values" or "values again" (1, N); "left", "right" (1, N); "rows K" (rows, K); "images C S"
            (images, C, S, S).
        dtype: Name of the element type.
    """
    kind, *sizes = name.split()
    if kind == "values":
        return _values(dtype)[None]
    if kind in {"left", "right"}:
        return _pairs(dtype)[kind == "right"][None]
    shape = tuple(map(int, sizes)) if kind == "rows" else (int(sizes[0]), int(sizes[1]), int(sizes[1]))
    random = np.random.default_rng(_SEED)
    each = _ROWS if kind == "rows" else _IMAGES
    return np.concatenate([draw(random, (each, *shape)) for draw in CONDITIONS.values()]).astype(element(dtype))


def condition_of(rows: int) -> Array:
    """Which of the conditions each row of a feed has, as its place among them."""
    return np.repeat(np.arange(len(CONDITIONS)), rows // len(CONDITIONS))


def _values(dtype: str) -> Array:
    """Every value of two bytes; of float32 every exponent, with many mantissas, and what functions turn at."""
    kind = element(dtype)
    if kind.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(kind)
    random = np.random.default_rng(_SEED)
    exponents = np.arange(-149, 128)[:, None]
    wide = (random.uniform(1, 2, (len(exponents), _BY_EXPONENT)) * 2.0**exponents).ravel()
    turns = np.concatenate([np.arange(-128, 129), np.arange(-64, 65) * np.pi / 2, 10.0 ** np.arange(-44, 39)])
    near = np.outer(turns, 1 + np.arange(-2, 3) * 2.0**-24).ravel()
    limits = [np.finfo(np.float32).max, np.finfo(np.float32).tiny, np.finfo(np.float32).smallest_subnormal]
    both = np.concatenate([wide, near, limits])
    every = [both, -both, random.uniform(-110, 110, _EVENLY), np.array(_SPECIALS)]
    return np.concatenate(every).astype(kind)


@functools.cache
def _pairs(dtype: str) -> tuple[Array, Array]:
    """Two numbers of any magnitudes, of like and moderate ones, nearly equal ones, and all pairs of specials."""
    random = np.random.default_rng(_SEED)
    limits = ml_dtypes.finfo(element(dtype))
    low, high = int(limits.minexp), int(limits.maxexp)
    parts = []
    for least, most in ((low, high), (max(low, -9), 9), (-4, 5)):
        drawn = [2.0 ** random.uniform(least, most, _PAIRS) * random.choice([-1, 1], _PAIRS) for _ in range(2)]
        parts.append(np.stack(drawn))
    parts.append(np.stack([parts[0][0], parts[0][0] * (1 + random.integers(-4, 5, _PAIRS) * float(limits.eps))]))
    parts.append(np.stack(np.meshgrid(_SPECIALS, _SPECIALS)).reshape(2, -1))
    with np.errstate(over="ignore"):
        left, right = np.concatenate(parts, 1).astype(element(dtype))
    return left, right

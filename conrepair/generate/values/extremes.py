"""Values at the ends of what types and operators bear: tried on sources of a network that's finite already."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np

from conrepair.generate.graph import Tensor
from conrepair.metrics.ulps import grid_of, is_real

__all__ = ["EXTREMES", "extreme"]

Array = np.ndarray[Any, Any]
Change = Callable[[Array, np.random.Generator], Array]


def _large(x: Array, generator: np.random.Generator) -> Array:
    return x * (64 if x.dtype == np.float16 else 1e4)


def _tiny(x: Array, generator: np.random.Generator) -> Array:
    return x * 2.0 ** grid_of(x.dtype).lowest * 8


def _zeros(x: Array, generator: np.random.Generator) -> Array:
    return np.where(generator.random(x.shape) < 0.3, generator.choice([0.0, -0.0], x.shape), x)


def _halves(x: Array, generator: np.random.Generator) -> Array:
    return np.round(x * 2) / 2


def _limits(x: Array, generator: np.random.Generator) -> Array:
    ends = np.array([np.iinfo(x.dtype).min, np.iinfo(x.dtype).max], x.dtype)
    return np.where(generator.random(x.shape) < 0.3, generator.choice(ends, x.shape), x)


def _duplicates(x: Array, generator: np.random.Generator) -> Array:
    return generator.choice(x.ravel()[:2], x.shape) if x.size else x


EXTREMES: Mapping[str, tuple[str, Change]] = {
    "duplicated values": ("fiu", _duplicates),
    "integer limits": ("iu", _limits),
    "large values": ("f", _large),
    "signed zeros": ("f", _zeros),
    "tiny values": ("f", _tiny),
    "values at a threshold": ("f", _halves),
}
"""By name, the kinds of types that it's for (as NumPy calls them; bfloat16 is an "f"), and what an array becomes."""


def extreme(tensor: Tensor, value: Array, random: Random) -> tuple[str, Array] | None:
    """Push one source to an end.

    Args:
        tensor: The source.
        value: What it has.
        random: The end is drawn from here.

    Returns:
        The end's name, and the new value; None for a source whose values are prescribed, or of a type without ends.
    """
    kind = "f" if is_real(value) else value.dtype.kind
    names = [name for name, (kinds, _) in EXTREMES.items() if kind in kinds]
    if tensor.values is not None or not names or not value.size:
        return None
    name = random.choice(names)
    generator = np.random.default_rng(random.getrandbits(64))
    with np.errstate(over="ignore"):
        return name, EXTREMES[name][1](value, generator).astype(value.dtype)

"""Whether what fixes a piece on samples fixes it for zeros, for large and for small values, too."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.numbers import pairing
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.diagnosis.localization.run.isolation import Isolation
from conrepair.diagnosis.localization.run.pieces import Pieces
from conrepair.formats.networks.network import Network
from conrepair.ground.graph.layer_graph import Array
from conrepair.verdicts.judging.arithmetic import shaken

EXTREMES: Final[Mapping[str, float]] = {"zeros": 0.0, "small values": 1e-3, "large values": 1e3}
"""What pieces are fed besides: so many times the source's activations. An epsilon decides where numbers are small,
a bound where they are large, and whether anything is divided by nothing where there are none."""

_OVER_NOTHING = 1e-6  # root mean square of a result that should be zero
_HALF = {"float16", "bfloat16"}  # large values are beyond what the one holds, small ones below


def failing(
    right: Activations,
    target: Network,
    feeds: Mapping[str, Array],
    pairs: Sequence[Pair],
    ends: Sequence[Pair],
    margin: float,
) -> dict[str, str]:
    """Feed pieces of both networks other values, and compare what they give.

    Where the source's result is finite the target's must be, and as near as rounding there explains: what the source
    gives when all that it reads changes in its last places says how much that is.

    Args:
        right: A batch through the source.
        target: The network with what shall fix the pieces.
        feeds: Of the target's own inputs.
        pairs: What is fed.
        ends: What is computed from the nearest of those, and compared.
        margin: Times its floor, from which on an error is none of rounding.

    Returns:
        For pieces that aren't right there, by the source's tensors, where that is: a key of `EXTREMES`.
    """
    known = {pair.source: pair for pair in pairs}
    graph = right.network.graph
    fed = list(dict.fromkeys([*graph.inputs, *known]))
    right.compute([name for name in fed if name not in graph.inputs])
    found: dict[str, str] = {}
    half = any(tensor.dtype in _HALF for tensor in target.graph.tensors.values())
    for name, factor in EXTREMES.items():
        left = [end for end in ends if end.source not in found]
        if not left or (half and factor):
            continue
        fetch = functools.partial(_multiplied, factor=factor, fetch=right.__getitem__, constant=graph.unfed)
        own = {key: _times(array, factor) for key, array in feeds.items()}
        wanted = list(dict.fromkeys(end.source for end in left))
        expected = dict(Pieces.between(right.network, fed, wanted).run(fetch))
        disturbed = dict(Pieces.between(right.network, fed, wanted).run(functools.partial(_shaken, fetch=fetch)))
        given = dict(Isolation(target, list(known.values()), [end.target for end in left]).run(fetch, own))
        for end in left:
            one, two = expected[end.source], given[end.target]
            if two.size != one.size or one.dtype.kind != "f":
                continue  # what computes something of another size is judged elsewhere
            limit = max(pairing.EQUAL, margin * _error(one, disturbed[end.source].reshape(one.shape)))
            if not _error(one, end.layout.to_source(two).reshape(one.shape)) <= limit:
                found[end.source] = name
    return found


def _multiplied(name: str, *, factor: float, fetch: Callable[[str], Array], constant: frozenset[str]) -> Array:
    array = fetch(name)
    return array if name in constant else _times(array, factor)


def _shaken(name: str, *, fetch: Callable[[str], Array]) -> Array:
    return shaken(fetch(name))


def _times(array: Array, factor: float) -> Array:
    """Real numbers multiplied; what's infinite (a mask) stays so, and whole numbers aren't values."""
    if array.dtype.kind != "f":
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.isfinite(array), array * array.dtype.type(factor), array)


def _error(expected: Array, given: Array) -> float:
    """Relative L2 where the source's result is finite; infinite where the other one isn't there."""
    finite = np.isfinite(expected)
    one, two = expected[finite].astype(np.float64), given[finite].astype(np.float64)
    if not np.isfinite(two).all():
        return float("inf")
    size, difference = (float(np.sqrt(np.mean(np.square(item)))) if one.size else 0.0 for item in (one, one - two))
    if not size:
        return 0.0 if difference <= _OVER_NOTHING else float("inf")
    return difference / size

"""The part of a tensor that its norm doesn't see: what a few large values, or an offset of all, are added to."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

HIDES = 8.0
"""Times the root mean square of a body that the tensor's is, from which on the tensor's norm hides it."""

_SAMPLED = 4096
_GOLDEN = (math.sqrt(5) - 1) / 2
_LEAST = 16  # elements of a sample that are a body
_QUANTILES = (0.25, 0.05, 0.01)  # of the distances to the centre: a body may be most of a tensor, or a window of it
_SPREAD = 64.0  # times such a quantile; of a normal distribution the first one is a third of the deviation
_ROUNDING = 2.0**-20  # eight units in the last place of float32, as a share of the centre
_COARSEST = 1e-2  # of a body, that this may be: what an offset has rounded away tells nothing
_ENDLESS = 1e37

_Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DenseElements:
    """Elements that lie together, far closer to one another than the tensor's norm is large.

    Attributes:
        centre: That they lie around.
        limit: Largest distance of one of them.
    """

    centre: float
    limit: float

    def holds(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which values belong to it.

        Args:
            values: Any shape.
        """
        return np.asarray(np.abs(values - values.dtype.type(self.centre)) <= self.limit)

    def error(self, reference: npt.NDArray[Any], candidates: npt.NDArray[Any]) -> _Float64:
        """Relative L2 of what the norm hides, less what rounding makes of the centre.

        Args:
            reference: The tensor, flat.
            candidates: [..., N], as flat as that; what isn't finite in the body is infinitely wrong.
        """
        inside = self.holds(reference)
        ours = reference[inside].astype(np.float64)
        gap = candidates[..., inside].astype(np.float64) - ours
        rounding = _ROUNDING * abs(self.centre) * math.sqrt(ours.size)
        apart = np.linalg.norm(np.where(np.isfinite(gap), gap, np.inf), axis=-1)
        return np.asarray(np.maximum(apart - rounding, 0.0) / np.linalg.norm(ours - self.centre))


def bodies_of(values: npt.NDArray[Any], rms: float) -> tuple[DenseElements, ...]:
    """The bodies of a tensor that its norm hides; none for nearly all tensors.

    Scores of an attention behind an additive mask (-1e4), a residual stream with a massive activation, what a large
    constant was added to: an error of all that matters is a rounding error of the norm there. A body is looked for
    around zero and around the median, in a few thousand elements.

    Args:
        values: The tensor, flat.
        rms: Root of the mean square of all its elements.
    """
    sample = values[_places(values.size)].astype(np.float64)
    sample = np.sort(sample[np.abs(sample) < _ENDLESS])
    if sample.size < _LEAST or not rms:
        return ()
    found = (_body(sample, centre, rms) for centre in dict.fromkeys((0.0, float(sample[sample.size // 2]))))
    return tuple(body for body in found if body is not None)


@functools.lru_cache(maxsize=64)
def _places(size: int) -> npt.NDArray[np.int64]:
    """Some of so many, evenly spread and in step with no axis (multiples of the golden ratio, modulo 1)."""
    if size <= _SAMPLED:
        return np.arange(size)
    places: npt.NDArray[np.int64] = (np.modf(np.arange(_SAMPLED) * _GOLDEN)[0] * size).astype(np.int64)
    return places


def _body(sample: _Float64, centre: float, rms: float) -> DenseElements | None:
    """The largest body around a centre that such a norm hides."""
    distances = np.sort(np.abs(sample - centre))
    zeros = int(np.searchsorted(distances, 0.0, "right"))
    apart = distances.size - zeros
    if apart < _LEAST:
        return None
    squares = np.cumsum(np.square(distances))
    for share in _QUANTILES:
        limit = _SPREAD * float(distances[zeros + int(share * (apart - 1))])
        inside = int(np.searchsorted(distances, limit, "right"))
        own = math.sqrt(squares[inside - 1] / inside)
        told = own * _COARSEST > _ROUNDING * abs(centre)
        if inside - zeros >= _LEAST and rms >= HIDES * own and told:
            return DenseElements(centre, limit)
    return None

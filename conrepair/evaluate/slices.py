"""Judge an output by its slices: scores beside boxes in pixels are as wrong as they are, not as their sum is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.evaluate.verdict import Floor, analytic_floor, combine_floor, rounding_scale
from conrepair.metrics.slices import AxisErrors, errors_by_axis

__all__ = ["Disturbed", "WrongSlices", "wrong_slices"]

Array = npt.NDArray[Any]

_TOLD = 1e-3  # relative L2 of a slice, from which on it's looked at: four of float32's digits are lost
_UNIT = 2.0**-23  # what libraries compute functions to whose largest value is 1, in the tails of a sigmoid, too
_ALIKE = 8.0  # times its norm: slices up to which one has the floor of
_FEW = 4.0  # a deviation that was measured of so many numbers may be twice as large
_MOST = 64  # slices of an axis that are looked at, the wrongest
_NAMED = 6
_ROWS = 16  # samples that are looked at where nothing was measured: whether that should be done


@dataclass(frozen=True)
class Disturbed:
    """What the reference gives by other means, whose difference from it is rounding.

    Attributes:
        second: In another arithmetic; first samples.
        rounded: With each tensor on the way rounded a little more; first samples.
        exact: Whether the other arithmetic is float64.
        operators: Of the model.
        precision: That is meant, the coarser one.
        own: The reference's precision, which was measured.
    """

    second: Array | None
    rounded: Array | None
    exact: bool
    operators: int
    precision: str
    own: str


@dataclass(frozen=True)
class WrongSlices:
    """Slices that differ by more than their own rounding explains.

    Attributes:
        axis: Of the arrays that were compared.
        places: Along it, in order.
        error: Relative L2 of the wrongest.
        floor: What rounding explains of that one.
        certain: Whether its floor was measured in such a way that it accuses.
    """

    axis: int
    places: tuple[int, ...]
    error: float
    floor: Floor
    certain: bool

    def words(self, output: str, axes: Sequence[int], first: int = 0) -> str:
        """Which slices, by how much.

        Args:
            output: Name of the output.
            axes: Of the output, for each of the arrays' that were compared.
            first: Place of the first slice that was compared.
        """
        places = [str(place + first) for place in self.places[:_NAMED]]
        more = len(self.places) - len(places)
        listing = f"{', '.join(places)} and {more} more" if more else " and ".join(", ".join(places).rsplit(", ", 1))
        last = self.axis == len(axes) - 1
        several = len(self.places) > 1
        noun = ("column" if last else "place") + "s" * several
        where = "" if last else f" along axis {axes[self.axis]}"
        verb, most, size = ("differ", "up to ", "their own size") if several else ("differs", "", "its own size")
        return (
            f"{noun} {listing}{where} of `{output}` {verb} by {most}{self.error:.1e} of {size}, where rounding "
            f"explains {self.floor.relative_l2:.1e}; among larger values the error of all hides that"
        )


def wrong_slices(reference: Array, candidate: Array, disturbed: Disturbed, *, margin: float) -> WrongSlices | None:
    """The slices that are wrong though the whole is within rounding; None where there are none.

    A slice is judged on the elements whose rounding was measured, by the same rules as the whole. One that's nearly
    zero, or what's left where large numbers cancel, is badly conditioned, and its own floor says so. Where nothing
    was measured, such a slice can't be told from a wrong one.

    Args:
        reference: Samples first; real numbers.
        candidate: The same shape.
        disturbed: What rounding does.
        margin: How many times its floor a slice may be off.

    Returns:
        Those along the axis where they are wrongest.
    """
    others = [array for array in (disturbed.second, disturbed.rounded) if array is not None]
    rows = min((len(array) for array in others), default=min(_ROWS, len(reference)))
    parts = [array[:rows] for array in (reference, candidate, *others)]
    if not parts[0].size or any(part.shape != parts[0].shape for part in parts):
        return None
    peak = float(np.max(np.abs(parts[0]), initial=0.0, where=np.isfinite(parts[0])))
    if not peak:
        return None
    found = [
        item
        for errors in errors_by_axis(parts[0], parts[1], parts[2:])
        for item in _wrong(errors, disturbed, margin, peak)
    ]
    return max(found, key=lambda item: (item.certain, item.error / item.floor.relative_l2), default=None)


def _wrong(errors: AxisErrors, disturbed: Disturbed, margin: float, peak: float) -> Iterator[WrongSlices]:
    unit = _UNIT * min(1.0, peak) * np.sqrt(errors.count)
    sizes = np.maximum(errors.reference, unit)
    estimate = analytic_floor(disturbed.operators, disturbed.precision)
    most = np.maximum(max(_TOLD, margin * estimate) * sizes, margin * unit)
    suspects = np.flatnonzero(errors.error > most)
    suspects = suspects[np.argsort(-(errors.error / most)[suspects], kind="stable")][:_MOST]
    judged: dict[int, tuple[float, Floor, bool]] = {}
    for place in suspects.tolist():
        floor = _floor(errors, place, sizes, disturbed)
        error = float(errors.error[place] / sizes[place])
        if error > margin * floor.relative_l2 and not (floor.doubted and error <= margin * floor.doubted):
            judged[place] = error, floor, floor.checked or (disturbed.exact and not floor.doubted)
    for certain in (True, False):
        places = tuple(sorted(place for place, item in judged.items() if item[2] is certain))
        if places:
            worst = max(places, key=lambda place: judged[place][0])
            yield WrongSlices(errors.axis, places, judged[worst][0], judged[worst][1], certain)


def _floor(errors: AxisErrors, place: int, sizes: npt.NDArray[np.float64], disturbed: Disturbed) -> Floor:
    """What rounding explains of a slice: what was measured of it, and what's usual for those that are no larger."""
    scale = rounding_scale(disturbed.precision, disturbed.own)
    alike = sizes <= _ALIKE * sizes[place]
    measured = []
    for other, weights in zip(errors.others, errors.weights, strict=True):
        own = float(other[place] * np.sqrt(1 + _FEW / weights[place]))
        measured.append(max(own, float(np.median(other[alike]))) / float(sizes[place]) * scale)
    second = measured[0] if disturbed.second is not None else None
    rounded = measured[-1] if disturbed.rounded is not None else None
    return combine_floor(second, disturbed.operators, disturbed.precision, exact=disturbed.exact, rounded=rounded)

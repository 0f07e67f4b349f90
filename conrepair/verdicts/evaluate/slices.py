"""Judge each slice of an output on its own, as scores that stand in one tensor beside boxes in pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.metrics.slices import AxisErrors, errors_by_axis
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.judging.floor import By, Floor, Rounding

Array = npt.NDArray[Any]

_NAMED = 6


@dataclass(frozen=True)
class WrongSlices:
    """Slices that differ beyond their own rounding error.

    Attributes:
        axis: Of the arrays that were compared.
        places: Along it, in order.
        error: Relative L2 of the wrongest.
        floor: The rounding error of that one.
        certain: Whether its rounding error was measured well enough to call the slice wrong.
        became: In words, what a quantization grid leaves of them; "" where only rounding errors were looked at.
    """

    axis: int
    places: tuple[int, ...]
    error: float
    floor: Floor
    certain: bool
    became: str = ""

    def words(self, output: str, axes: Sequence[int], first: int = 0, size: int | None = None) -> str:
        """The wrong slices and their error, in words.

        Args:
            output: Name of the output.
            axes: Of the output, for each of the arrays' that were compared.
            first: Place of the first slice that was compared.
            size: How many slices there are; None: nobody knows.
        """
        places = [str(place + first) for place in self.places[:_NAMED]]
        more = len(self.places) - len(places)
        listing = f"{', '.join(places)} and {more} more" if more else " and ".join(", ".join(places).rsplit(", ", 1))
        last = self.axis == len(axes) - 1
        several = len(self.places) > 1
        noun = ("column" if last else "place") + "s" * several
        where = "" if last else f" along axis {axes[self.axis]}"
        named = f"all {size} {noun}" if several and len(self.places) == size else f"{noun} {listing}"
        if self.became:
            return f"{named}{where} of `{output}` {self.became}"
        are, most, total = ("are", "up to ", "these small values") if several else ("is", "", "this small value")
        return (
            f"{named}{where} of `{output}` {are} off by {most}{percent(self.error)} (rounding error: "
            f"{percent(self.floor.relative_l2)}); the error of the whole output hides {total}"
        )


def coarse_slices(reference: Array, candidate: Array, step: float, most: float) -> WrongSlices | None:
    """The slices of a quantized output of which a grid leaves a constant, or more error than its budget allows.

    They're wrong where they're of another sort than the large values beside them: far smaller, with nothing between,
    and no few among many, which may be channels that hardly ever have a value.

    Args:
        reference: Samples first; real numbers.
        candidate: The same shape.
        step: Of its grid; 0 where that's to be read from its values.
        most: Relative L2 that a slice may be off by.

    Returns:
        Those along the axis where they're wrongest; None where there are none.
    """
    if not np.isfinite(reference).all() or not np.isfinite(candidate).all():
        return None
    found, peak = [], float(np.abs(reference).max(initial=0.0))
    squares = np.square(reference), np.square(candidate - reference)
    for axis in range(1, reference.ndim):
        rest = tuple(other for other in range(reference.ndim) if other != axis)
        sizes, errors = (np.sqrt(part.mean(rest, np.float64)) for part in squares)
        dead = (np.ptp(candidate, rest) == 0) & (reference.std(rest, np.float64) > numbers.TOLD * sizes)
        wrong = (dead | (errors > most * sizes)) & (sizes > 0)
        largest = sizes.max(initial=0.0, where=wrong)
        next_one = sizes.min(initial=np.inf, where=sizes > largest)
        far = peak > 1 and sizes.max() > numbers.FAR * largest and numbers.APART * largest < next_one < np.inf
        certain = bool(far and wrong.sum() >= numbers.SHARE * wrong.size)
        places = np.flatnonzero(wrong if certain else dead)
        if not places.size:
            continue
        step = step or float(np.diff(np.unique(candidate)).min(initial=np.inf))
        reach = np.abs(reference.take(places, axis)).max()
        became = (
            f"{'became constant' if dead[places].all() else 'lost most of their values'}: the quantization step is "
            f"{step:.3g}, for values up to {peak:.4g} in the same tensor, and theirs reach {reach:.3g}"
            f"{'. Quantize each input of the Concat that joins them, not its output' if certain else ''}"
        )
        error = float((errors[places] / sizes[places]).max())
        found.append(WrongSlices(axis, tuple(map(int, places)), error, Floor(most, By.OPERATORS), certain, became))
    return max(found, key=lambda item: (item.certain, item.error), default=None)


def wrong_slices(
    reference: Array, candidate: Array, others: Mapping[str, Array], rounding: Rounding, *, margin: float
) -> WrongSlices | None:
    """The slices that are wrong though the whole is within rounding; None where there are none.

    A slice is judged on the elements whose rounding was measured, by the same rules as the whole. One that's nearly
    zero, or what's left where large numbers cancel, is badly conditioned, and its own floor says so. Where nothing
    was measured, such a slice can't be told from a wrong one.

    Args:
        reference: Samples first; real numbers.
        candidate: The same shape.
        others: The reference's first samples by other means, by the names that `Rounding.floor` has for them.
        rounding: Of the reference.
        margin: How many times its floor a slice may be off.

    Returns:
        Those along the axis where they are wrongest.
    """
    rows = min((len(array) for array in others.values()), default=min(numbers.ROWS, len(reference)))
    parts = [array[:rows] for array in (reference, candidate, *others.values())]
    if not parts[0].size or any(part.shape != parts[0].shape for part in parts):
        return None
    peak = float(np.max(np.abs(parts[0]), initial=0.0, where=np.isfinite(parts[0])))
    if not peak:
        return None
    found = [
        item
        for errors in errors_by_axis(parts[0], parts[1], dict(zip(others, parts[2:], strict=True)))
        for item in _wrong(errors, rounding, margin, peak)
    ]
    return max(found, key=lambda item: (item.certain, item.error / item.floor.relative_l2), default=None)


def _wrong(errors: AxisErrors, rounding: Rounding, margin: float, peak: float) -> Iterator[WrongSlices]:
    unit = numbers.UNIT * min(1.0, peak) * np.sqrt(errors.count)
    sizes = np.maximum(errors.reference, unit)
    most = np.maximum(max(numbers.TOLD, margin * rounding.estimate) * sizes, margin * unit)
    suspects = np.flatnonzero(errors.error > most)
    suspects = suspects[np.argsort(-(errors.error / most)[suspects], kind="stable")][: numbers.LOOKED_AT]
    judged: dict[int, tuple[float, Floor, bool]] = {}
    for place in suspects.tolist():
        floor = rounding.floor(**{name: _own(errors, name, place, sizes) for name in errors.others})
        error = float(errors.error[place] / sizes[place])
        if error > margin * floor.relative_l2 and not (floor.doubted and error <= margin * floor.doubted):
            judged[place] = error, floor, floor.checked or (rounding.exact and not floor.doubted)
    for certain in (True, False):
        places = tuple(sorted(place for place, item in judged.items() if item[2] is certain))
        if places:
            worst = max(places, key=lambda place: judged[place][0])
            yield WrongSlices(errors.axis, places, judged[worst][0], judged[worst][1], certain)


def _own(errors: AxisErrors, name: str, place: int, sizes: npt.NDArray[np.float64]) -> float:
    """A slice's rounding error: as measured of it, or the median of slices no larger, whichever is more."""
    measured, weights = errors.others[name]
    own = float(measured[place] * np.sqrt(1 + numbers.FEW / weights[place]))
    usual = float(np.median(measured[sizes <= numbers.ALIKE * sizes[place]]))
    return max(own, usual) / float(sizes[place])

"""What a search varies: points of a cube, each of which stands for inputs of a network.

Rounding errors show at magnitudes, so a point's coordinates are magnitudes as much as values: half of a coordinate is
linear, half is logarithmic down to a billionth. Deep in a network a number is only tiny, or nearly the same as its
neighbours, where a whole input is. So each input has three coordinates of its own besides those of its elements: the
scale of all of it, how far its elements lie apart, and what they lie around.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from conrepair.ground.data.synthetic import SyntheticRange, draw
from conrepair.ground.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.ground.operators.record import Array
from conrepair.ground.runtime.errors import UsageError

LOW, HIGH = -5.0, 5.0
"""Between which inputs are searched where nothing else is said."""

_CONTROLS = 3
_KNEE, _LEAST = 0.1, 1e-9  # where the linear half of a coordinate begins, and the least of the other one beside that
_SCALE = ((-1.0, -0.8, 0.0), (-36.0, -9.0, 0.0))  # coordinates, and the powers of ten that they stand for
_SPREAD = ((-1.0, -0.25, 0.5, 1.0), (-7.0, 0.0, 0.0, 1.0))
_AROUND = 0.5  # of a given value, and of the mean of its row


@dataclass(frozen=True)
class Part:
    """A tensor that is searched.

    Attributes:
        name: As the network calls it.
        shape: Of it.
        dtype: Of its elements.
        centres: Points around which its values vary, [rows, elements]; nearest them lie most that are tried.
        down: How far below them values may lie; one for all, or for each.
        up: The same above them.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    centres: Array
    down: Array
    up: Array

    @property
    def coordinates(self) -> int:
        """How many it takes."""
        return _CONTROLS + int(self.centres.shape[1])

    def values(self, coordinates: Array, rows: Array) -> Array:
        """What coordinates of several points stand for, [count, *shape].

        Args:
            coordinates: [count, coordinates], between -1 and 1; those of the whole tensor in front.
            rows: [count], which of the centres.
        """
        scale, spread, offset = coordinates[:, :_CONTROLS].T[..., np.newaxis]
        portions = _portions(coordinates[:, _CONTROLS:])
        portions *= 10 ** np.interp(spread, *_SPREAD)
        portions += np.sign(offset) * np.maximum(2 * np.abs(offset) - 1, 0.0)
        portions *= 10 ** np.interp(scale, *_SCALE)
        np.minimum(np.maximum(portions, -1, out=portions), 1, out=portions)
        centres, down, up = (side if len(side) == 1 else side[rows] for side in (self.centres, self.down, self.up))
        if not (down.all() and up.all()):
            portions = np.where(down == 0, np.abs(portions), np.where(up == 0, -np.abs(portions), portions))
        values = centres + portions * np.where(portions < 0, down, up)
        return np.asarray(values.reshape(-1, *self.shape), self.dtype)


@dataclass(frozen=True)
class Space:
    """The cube from -1 to 1 whose points stand for what a network is fed.

    Attributes:
        parts: Tensors that are searched.
        kept: Of each data row that values vary around, the inputs that stay as they are: integers and truth values.
            Where there are several rows, the first coordinate says which.
    """

    parts: tuple[Part, ...]
    kept: tuple[Mapping[str, Array], ...]

    @property
    def size(self) -> int:
        """The coordinates of a point."""
        return (len(self.kept) > 1) + sum(part.coordinates for part in self.parts)

    @property
    def controls(self) -> tuple[int, ...]:
        """The coordinates that change a whole tensor."""
        whole = [range(start, start + _CONTROLS) for start in self._starts]
        return (*range(len(self.kept) > 1), *(place for places in whole for place in places))

    def feeds(self, point: Array) -> dict[str, Array]:
        """What a point [size] stands for: see `each`."""
        return self.each(point[np.newaxis])[0]

    def each(self, points: Array) -> list[dict[str, Array]]:
        """What points stand for.

        Args:
            points: [count, size], between -1 and 1.

        Returns:
            Of each, by name, all inputs of the network.
        """
        rows = self._rows(points)
        places = zip(self.parts, self._starts, strict=True)
        made = [part.values(points[:, start : start + part.coordinates], rows) for part, start in places]
        names = [part.name for part in self.parts]
        return [
            {**self.kept[row], **dict(zip(names, values, strict=True))}
            for row, *values in zip(rows.tolist(), *made, strict=True)
        ]

    def distance(self, point: Array, feeds: Mapping[str, Array]) -> float:
        """How far what a point stands for is from what it lies around, beside the size of that."""
        (row,) = self._rows(point[np.newaxis])
        centres = np.concatenate([part.centres[row] for part in self.parts])
        values = np.concatenate([feeds[part.name].ravel() for part in self.parts])
        return float(np.linalg.norm(values - centres) / (np.linalg.norm(centres) or 1.0))

    def _rows(self, points: Array) -> Array:
        count = len(self.kept)
        return np.minimum((points[:, 0] + 1) / 2 * count, count - 1).astype(int)

    @cached_property
    def _starts(self) -> Array:
        return np.cumsum([int(len(self.kept) > 1), *(part.coordinates for part in self.parts[:-1])])


def space_of(
    inputs: Sequence[TensorSpec],
    low: float = LOW,
    high: float = HIGH,
    *,
    around: Sequence[Mapping[str, Array]] = (),
    seed: int = 0,
) -> Space:
    """What is searched for a network.

    Args:
        inputs: Of the network; sizes that they leave open are one.
        low: Lower end of inputs.
        high: Upper end of inputs.
        around: Data rows (feeds) that values shall stay near, in place of ends.
        seed: What integers are drawn by.

    Raises:
        UsageError: if no input holds floating point numbers, or ends are none.
    """
    searched = [spec for spec in inputs if spec.is_float]
    if not searched:
        listing = "; ".join(map(str, inputs)) or "none"
        raise UsageError(
            f"nothing can be searched: no input holds floating point numbers (inputs: {listing}). "
            "Search the weights (weights)."
        )
    parts = tuple(_part(spec, low, high, around) for spec in searched)
    kept = {place: spec for place, spec in enumerate(inputs) if not spec.is_float}
    drawn = {spec.name: draw(spec, _shape(spec), SyntheticRange(seed), (place, 0)) for place, spec in kept.items()}
    return Space(
        parts, tuple({name: row.get(name, array) for name, array in drawn.items()} for row in around) or (drawn,)
    )


def _part(spec: TensorSpec, low: float, high: float, around: Sequence[Mapping[str, Array]]) -> Part:
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise UsageError(f"{spec.name}: the range from {low:g} to {high:g} is empty: low must be below high.")
    dtype, given = numpy_dtype(spec.dtype), [row[spec.name] for row in around if spec.name in row]
    if len(given) == len(around) and given:
        centres = np.stack([np.ravel(array).astype(np.float64) for array in given])
        reach = _AROUND * np.maximum(np.abs(centres), np.abs(centres).mean(axis=1, keepdims=True))
        return Part(spec.name, given[0].shape, dtype, centres, reach, reach)
    rows = (max(len(around), 1), int(np.prod(_shape(spec))))
    centres = np.full(rows, 0.0 if low <= 0 <= high else (low + high) / 2)
    return Part(spec.name, _shape(spec), dtype, centres, centres - low, high - centres)


def _shape(spec: TensorSpec) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else 1 for size in spec.shape)


def _portions(coordinates: Array) -> Array:
    """Of what elements may reach: exactly zero in the middle, then logarithmic, then linear."""
    away = 2 * np.abs(coordinates)
    linear, near = away * (1 - _KNEE), away < 1
    linear += 2 * _KNEE - 1
    logarithmic = np.exp(np.log(_LEAST) * (1 - away[near])) - _LEAST
    linear[near] = _KNEE / (1 - _LEAST) * logarithmic
    linear *= np.sign(coordinates)
    return np.asarray(linear)

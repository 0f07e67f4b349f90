"""Numbers that share a scale: those of a tensor, of a channel, or of a block of neighbours along an axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from conrepair.ground.graph.layer_graph import Array, Parameter

HALF_STEP = 0.505
"""What rounding moves a number by at most, in steps, with what arithmetic adds."""

CUT_OFF = 1.01
"""The same of the largest or smallest number of a slice, which may be beyond its integers."""


@dataclass(frozen=True)
class Slices:
    """One way to share a parameter's scales.

    Attributes:
        scales: Of each slice, [slices]; a negative one turns its integers round.
        shape: Of the parameter.
        block: How many numbers along each axis share a scale; the last block of an axis may have fewer.
    """

    scales: npt.NDArray[np.float64]
    shape: tuple[int, ...]
    block: tuple[int, ...]

    @property
    def steps(self) -> npt.NDArray[np.float64]:
        """How far apart the numbers of each slice are, [slices]."""
        return np.abs(self.scales)

    def rows(self, array: Array) -> npt.NDArray[np.float64]:
        """The numbers of each slice.

        Args:
            array: Of the parameter's shape.

        Returns:
            [slices, numbers]; a block that has fewer numbers than others ends in zeros.
        """
        split = self._split(array.astype(np.float64))
        turned: npt.NDArray[np.float64] = split.transpose(*range(0, split.ndim, 2), *range(1, split.ndim, 2))
        return turned.reshape(self.scales.size, -1)

    def peaks(self, array: Array) -> npt.NDArray[np.float64]:
        """The largest number of each slice, whatever its sign, [slices].

        Args:
            array: Of the parameter's shape, of real numbers.
        """
        split = self._split(np.abs(array))
        most: npt.NDArray[np.float64] = split.max(axis=tuple(range(1, split.ndim, 2))).astype(np.float64)
        return most.reshape(-1)

    def _split(self, array: Array) -> Array:
        """Each axis as the blocks along it and the numbers in them, the last block filled up with zeros."""
        missing = [(0, -size % width) for size, width in zip(self.shape, self.block, strict=True)]
        whole = np.pad(array, missing) if any(map(any, missing)) else array
        split = [part for size, width in zip(whole.shape, self.block, strict=True) for part in (size // width, width)]
        return whole.reshape(split)

    def put(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The parameter of which these are the rows.

        Args:
            rows: [slices, numbers].
        """
        counts = [-(-size // width) for size, width in zip(self.shape, self.block, strict=True)]
        apart = rows.reshape(*counts, *self.block)
        turned = apart.transpose([place for axis in range(len(counts)) for place in (axis, axis + len(counts))])
        whole = turned.reshape([count * width for count, width in zip(counts, self.block, strict=True)])
        return whole[tuple(map(slice, self.shape))]

    @property
    def words(self) -> str:
        """What they are, behind a number: "slices of axis 0", "blocks"."""
        parted = [axis for axis, width in enumerate(self.block) if width < self.shape[axis]]
        whole = len(parted) == 1 and self.block[parted[0]] == 1
        return f"slices of axis {parted[0]}" if whole else "blocks"


def slices_of(parameter: Parameter, shape: tuple[int, ...]) -> Iterator[Slices]:
    """How the scales of a parameter may go with its numbers: where axes are of one size, nothing says of which.

    Args:
        parameter: In few bits; one without scales has no slices.
        shape: Of its numbers, which may have axes of one more or fewer.
    """
    scales = np.asarray(parameter.scales, np.float64)
    if parameter.blocks:
        if len(parameter.blocks) == len(shape):
            yield Slices(scales, shape, tuple(min(pair) for pair in zip(parameter.blocks, shape, strict=True)))
    elif scales.size == 1:
        yield Slices(scales, shape, shape)
    else:
        for axis, size in enumerate(shape):
            if size == scales.size > 1:
                yield Slices(scales, shape, (*shape[:axis], 1, *shape[axis + 1 :]))

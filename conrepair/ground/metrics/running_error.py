"""The difference between two tensors, added up batch by batch, at the speed of a few passes over the memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.metrics.body import bodies_of

_CHUNK = 1 << 18  # elements at a time: what's computed on the way stays in the processor's cache
_ENDLESS = 1e37
_LARGE = 1e9
_SMALL = 1e-15


@dataclass
class RunningError:
    """Sums over all elements added so far; where either side isn't finite, mismatches are counted instead.

    What `conrepair.ground.metrics.tensors.compare_tensors` measures to the last digit of float64 is measured here in
    the tensors' own precision, at a tenth of the time: good for errors that are compared with a floor.

    Integers, booleans and text are the same or they aren't: the sums count those that aren't, and all.

    Attributes:
        count: Elements.
        difference: Sum of (candidate - reference)^2.
        reference: Sum of reference^2.
        candidate: Sum of candidate^2.
        product: Sum of reference * candidate.
        max_abs: Largest |candidate - reference|.
        peak: Largest |reference|.
        mismatched: Positions where one side is NaN or infinite and the other isn't the same, nor a number so large
            that it stands for infinity (the lowest float that pads a maximum, -1e9 in a mask).
        hidden: Largest relative L2, over the batches, of a body that the norm of all elements hides (`metrics.body`).
        untold: Positions where both sides are the same NaN or infinity: they say nothing.
    """

    count: int = 0
    difference: float = 0.0
    reference: float = 0.0
    candidate: float = 0.0
    product: float = 0.0
    max_abs: float = 0.0
    peak: float = 0.0
    mismatched: int = 0
    hidden: float = 0.0
    untold: int = 0

    def add(self, reference: npt.NDArray[Any], candidate: npt.NDArray[Any]) -> RunningError:
        """Add a batch; returns the sums.

        Args:
            reference: Any shape.
            candidate: The same shape.

        Raises:
            ValueError: if the shapes differ.
        """
        if reference.shape != candidate.shape:
            raise ValueError(f"shapes {reference.shape} and {candidate.shape} can't be compared")
        self.count += reference.size
        if not (_is_real(reference) or _is_real(candidate)):
            self._add_exact(reference, candidate)
            return self
        one, two = _flat(reference), _flat(candidate)
        before, differs = self.reference, False
        for start in range(0, one.size, _CHUNK):
            differs |= self._add(one[start : start + _CHUNK], two[start : start + _CHUNK])
        if differs:  # else nothing is hidden
            self._add_hidden(one, two, self.reference - before)
        return self

    def _add_exact(self, reference: npt.NDArray[Any], candidate: npt.NDArray[Any]) -> None:
        other = int(np.count_nonzero(reference != candidate))
        self.difference += other
        self.reference += reference.size
        self.candidate += reference.size
        self.product += reference.size - other

    def _add_hidden(self, one: npt.NDArray[Any], two: npt.NDArray[Any], squares: float) -> None:
        for body in bodies_of(one, math.sqrt(squares / one.size) if one.size else 0.0):
            self.hidden = max(self.hidden, float(body.error(one, two)))

    def _add(self, one: npt.NDArray[Any], two: npt.NDArray[Any]) -> bool:
        """Add some of a batch; whether both differ there."""
        known = self.mismatched
        with np.errstate(all="ignore"):  # overflows are looked at below
            sums = _sums(one, two)
        if 0 < sums[-1] < _SMALL:  # whose squares float32 doesn't have
            sums = _sums(one.astype(np.float64), two.astype(np.float64))
        if not all(map(math.isfinite, sums)):
            one, two = _infinite(one), _infinite(two)
            finite = np.isfinite(one) & np.isfinite(two)
            same = (one == two) | (np.isnan(one) & np.isnan(two)) | _stands_for(one, two) | _stands_for(two, one)
            self.mismatched += int((~finite & ~same).sum())
            self.untold += int((~finite & same).sum())
            with np.errstate(all="ignore"):
                sums = _sums(np.where(finite, one, 0.0), np.where(finite, two, 0.0))
        difference, reference_sum, candidate_sum, product, largest, peak = sums
        self.difference += difference
        self.reference += reference_sum
        self.candidate += candidate_sum
        self.product += product
        self.max_abs = max(self.max_abs, largest)
        self.peak = max(self.peak, peak)
        return largest > 0 or self.mismatched > known

    @property
    def reference_rms(self) -> float:
        """Root of the mean square of the reference; 0 before anything is added."""
        return math.sqrt(self.reference / self.count) if self.count else 0.0

    @property
    def relative_l2(self) -> float:
        """||candidate - reference|| / ||reference||; infinite after a mismatch, or when only the reference is 0."""
        if self.mismatched:
            return math.inf
        if not self.reference:
            return math.inf if self.difference else 0.0
        return math.sqrt(self.difference / self.reference)

    @property
    def error(self) -> float:
        """The larger of that and what it hides: what decides whether two tensors are the same."""
        return max(self.relative_l2, self.hidden)

    @property
    def cosine(self) -> float:
        """Of the angle between both; 1 when both are zero, 0 when one is."""
        if not self.reference or not self.candidate:
            return 1.0 if self.reference == self.candidate else 0.0
        return max(-1.0, min(1.0, self.product / math.sqrt(self.reference) / math.sqrt(self.candidate)))

    @property
    def norm_ratio(self) -> float:
        """||candidate|| / ||reference||; 1 when both are zero, infinite when only the reference is."""
        if not self.reference:
            return math.inf if self.candidate else 1.0
        return math.sqrt(self.candidate / self.reference)


def relative_l2(reference: npt.NDArray[Any], candidate: npt.NDArray[Any]) -> float:
    """Of two arrays of one shape; see `RunningError.relative_l2`."""
    return RunningError().add(reference, candidate).relative_l2


def error_of(reference: npt.NDArray[Any], candidate: npt.NDArray[Any]) -> float:
    """Of two arrays of one shape; see `RunningError.error`."""
    return RunningError().add(reference, candidate).error


def _is_real(array: npt.NDArray[Any]) -> bool:
    """Whether the elements are real (or complex) numbers; ml_dtypes' have the kind V or f."""
    return array.dtype.kind not in "biuSUOT"


def _flat(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    return flat if flat.dtype in (np.float32, np.float64) else flat.astype(np.float32 if flat.itemsize < 4 else float)


def _infinite(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """As float64, with what's near the end of float32's range made infinite."""
    wide = values.astype(np.float64)
    return np.where(np.abs(wide) >= _ENDLESS, np.copysign(np.inf, wide), wide)


def _stands_for(one: npt.NDArray[np.float64], two: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Where one is infinite and the other is large, with the same sign."""
    return np.asarray(np.isinf(one) & (np.sign(one) == np.sign(two)) & (np.abs(two) >= _LARGE))


def _sums(one: npt.NDArray[Any], two: npt.NDArray[Any]) -> tuple[float, float, float, float, float, float]:
    if not one.size:
        return (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    gap = two - one
    largest, peak = (max(float(values.max()), -float(values.min())) for values in (gap, one))
    squares = [float(np.vdot(*pair)) for pair in ((gap, gap), (one, one), (two, two), (one, two))]
    return (squares[0], squares[1], squares[2], squares[3], largest, peak)

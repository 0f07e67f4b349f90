"""How far a candidate tensor is from its reference, in several units at once.

Every number is computed in float64 and over bounded chunks, so a memory-mapped tensor larger than
the memory can be compared. Sums of squares are added up as decimal numbers and can neither overflow nor
underflow. Non-finite values are counted, never averaged away. Differences between integers are taken
before they are rounded to float64, so that neighbours above 2**53 aren't equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

CHUNK_ELEMENTS = 1 << 20
"""Elements per chunk: 8 MiB per float64 temporary, of which about ten live at a time."""

_SAFE_EXPONENT = 400
"""Peaks between 2**-400 and 2**400 can be squared and summed in float64 without rescaling."""

_HALF_OF_INT64 = 32
_BLOCK = 1 << 16  # numbers that are looked at together

_Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TensorError:
    """The difference between two tensors of one shape.

    Averages and norms are over the positions where both tensors are finite. A position where
    either isn't finite matches when both are NaN or both are the same infinity; else it counts as
    exceeding, whatever the tolerance.

    Attributes:
        count: Elements compared, including the non-finite ones.
        max_abs: Largest |candidate - reference|; 0 when nothing is finite.
        max_reference: Largest |reference|; 0 when nothing is finite.
        mean_abs: Mean |candidate - reference|; 0 when nothing is finite.
        relative_l2: ||candidate - reference|| / ||reference||; 0 when both are zero, inf when only
            the reference is.
        cosine: Cosine of the angle between the two; 1 when both are zero, 0 when one is.
        norm_ratio: ||candidate|| / ||reference||; 1 when both are zero, inf when only the
            reference is. Shows what the cosine is blind to.
        sqnr_db: Signal to quantization noise, 10 log10(sum reference^2 / sum difference^2), in
            decibel; inf when there is no difference, -inf when only the reference is zero.
        nan_reference: NaNs in the reference.
        nan_candidate: NaNs in the candidate.
        inf_reference: Infinities in the reference.
        inf_candidate: Infinities in the candidate.
        exceeding: Elements with |candidate - reference| > atol + rtol * |reference|, and the
            non-finite mismatches.
        mismatched: Positions where one side is NaN or infinite and the other isn't the same.
        worst_index: Index of the first non-finite mismatch if there is one, else of the first
            element with the largest absolute difference; () when no element could be compared.
    """

    count: int
    max_abs: float
    max_reference: float
    mean_abs: float
    relative_l2: float
    cosine: float
    norm_ratio: float
    sqnr_db: float
    nan_reference: int
    nan_candidate: int
    inf_reference: int
    inf_candidate: int
    exceeding: int
    mismatched: int
    worst_index: tuple[int, ...]

    @property
    def within_tolerance(self) -> bool:
        """Whether no element exceeds the tolerance."""
        return self.exceeding == 0


def _scaled(value: float, exponent: int = 0) -> Decimal:
    """The number value * 2**exponent: decimal ones have exponents of six digits, and 28 digits."""
    return Decimal(value) * Decimal(2) ** exponent


@dataclass
class _Totals:
    """What has been added up over the chunks so far."""

    finite: int = 0
    max_abs: float = 0.0
    max_reference: float = 0.0
    nan_reference: int = 0
    nan_candidate: int = 0
    inf_reference: int = 0
    inf_candidate: int = 0
    exceeding: int = 0
    mismatched: int = 0
    worst: int | None = None
    mismatch: int | None = None
    abs_sum: Decimal = Decimal(0)
    reference_squares: Decimal = Decimal(0)
    candidate_squares: Decimal = Decimal(0)
    difference_squares: Decimal = Decimal(0)
    products: Decimal = Decimal(0)

    def add(
        self,
        start: int,
        reference: _Float64,
        candidate: _Float64,
        rtol: float,
        atol: float,
        difference: _Float64 | None = None,
    ) -> None:
        """Adds one chunk, whose first element has the flat position `start`; with its difference if that's known."""
        finite = np.isfinite(reference) & np.isfinite(candidate)
        positions = np.flatnonzero(finite)
        if positions.size < finite.size:
            self._add_non_finite(start, reference, candidate, finite)
            reference, candidate, difference = reference[finite], candidate[finite], None
        if not positions.size:
            return
        with np.errstate(over="ignore"):
            difference = candidate - reference if difference is None else difference
            distance, size = np.abs(difference), np.abs(reference)
            tolerance = atol + rtol * size
        self.max_reference = max(self.max_reference, float(size.max()))
        self.exceeding += int((distance > tolerance).sum())
        at = int(distance.argmax())
        peak = float(distance[at])
        if self.worst is None or peak > self.max_abs:
            self.worst, self.max_abs = start + int(positions[at]), peak
        self.finite += reference.size
        self._add_sums(reference, candidate, difference)

    def _add_non_finite(
        self, start: int, reference: _Float64, candidate: _Float64, finite: npt.NDArray[np.bool_]
    ) -> None:
        self.nan_reference += int(np.isnan(reference).sum())
        self.nan_candidate += int(np.isnan(candidate).sum())
        self.inf_reference += int(np.isinf(reference).sum())
        self.inf_candidate += int(np.isinf(candidate).sum())
        mismatches = np.flatnonzero(_mismatches(reference, candidate, finite))
        self.exceeding += mismatches.size
        self.mismatched += mismatches.size
        if mismatches.size and self.mismatch is None:
            self.mismatch = start + int(mismatches[0])

    def _add_sums(self, reference: _Float64, candidate: _Float64, difference: _Float64) -> None:
        halvings = 0
        if not np.isfinite(difference).all():
            # Two opposite values near the end of float64: their difference fits when halved.
            difference, halvings = candidate * 0.5 - reference * 0.5, 1
        reference, of_reference = _rescaled(reference)
        candidate, of_candidate = _rescaled(candidate)
        difference, of_difference = _rescaled(difference)
        of_difference += halvings
        # Not np.dot: its order of summation may depend on the threads, and equal inputs must
        # give a cosine of exactly 1.
        self.abs_sum += _scaled(float(np.abs(difference).sum()), of_difference)
        self.reference_squares += _scaled(float(np.square(reference).sum()), 2 * of_reference)
        self.candidate_squares += _scaled(float(np.square(candidate).sum()), 2 * of_candidate)
        self.difference_squares += _scaled(float(np.square(difference).sum()), 2 * of_difference)
        self.products += _scaled(float((reference * candidate).sum()), of_reference + of_candidate)

    def error(self, shape: tuple[int, ...]) -> TensorError:
        """Turns the totals into the result for tensors of that shape."""
        worst = self.worst if self.mismatch is None else self.mismatch
        mean = self.abs_sum / self.finite if self.finite else self.abs_sum
        return TensorError(
            count=math.prod(shape),
            max_abs=self.max_abs,
            max_reference=self.max_reference,
            mean_abs=float(mean),
            relative_l2=_norm_quotient(self.difference_squares, self.reference_squares, 0.0),
            cosine=_cosine(self.products, self.reference_squares, self.candidate_squares),
            norm_ratio=_norm_quotient(self.candidate_squares, self.reference_squares, 1.0),
            sqnr_db=_sqnr_db(self.reference_squares, self.difference_squares),
            nan_reference=self.nan_reference,
            nan_candidate=self.nan_candidate,
            inf_reference=self.inf_reference,
            inf_candidate=self.inf_candidate,
            exceeding=self.exceeding,
            mismatched=self.mismatched,
            worst_index=() if worst is None else tuple(int(index) for index in np.unravel_index(worst, shape)),
        )


def compare_tensors(
    reference: npt.NDArray[Any], candidate: npt.NDArray[Any], *, rtol: float, atol: float
) -> TensorError:
    """Compares two tensors of one shape.

    Args:
        reference: Any shape; bool, integer or float of any width (compared as float64, two integers
            by their exact difference). May be a memmap, and needn't be contiguous.
        candidate: Same shape as `reference`; its dtype may differ.
        rtol: Tolerance relative to |reference|, at least 0.
        atol: Absolute tolerance in the units of the tensors, at least 0.

    Returns:
        The difference; an empty pair has none (0 elements, cosine 1, SQNR inf).

    Raises:
        ValueError: The shapes differ, a dtype isn't real, or a tolerance is negative or NaN.
    """
    if not (rtol >= 0 and atol >= 0):
        raise ValueError(f"tolerances must be at least 0, got rtol={rtol} and atol={atol}")
    reference, candidate = _checked_pair(reference, candidate)
    totals = _Totals()
    flat_reference, flat_candidate = _flat(reference), _flat(candidate)
    for start in range(0, reference.size, CHUNK_ELEMENTS):
        chunk = slice(start, start + CHUNK_ELEMENTS)
        one, two = np.asarray(flat_reference[chunk]), np.asarray(flat_candidate[chunk])
        reals = np.asarray(one, dtype=np.float64), np.asarray(two, dtype=np.float64)
        totals.add(start, *reals, rtol, atol, _wide_difference(one, two))
    return totals.error(reference.shape)


def relative_error(reference: npt.NDArray[Any], candidate: npt.NDArray[Any]) -> float:
    """Relative L2, to the last digit of float64; infinite after a mismatch, and of tensors of other shapes."""
    if reference.shape != candidate.shape:
        return math.inf
    error = compare_tensors(reference, candidate, rtol=0, atol=0)
    return math.inf if error.mismatched else error.relative_l2


def per_sample_relative_l2(reference: npt.NDArray[Any], candidate: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Computes ||candidate - reference|| / ||reference|| for each sample.

    Positions where both are NaN or the same infinity are left out; any other non-finite position
    makes its sample's error inf, so that a NaN can't hide.

    Args:
        reference: [N, ...], real dtype.
        candidate: Same shape, real dtype.

    Returns:
        float64 [N]; 0 where both are zero, inf where only the reference is.

    Raises:
        ValueError: The shapes differ, there is no sample axis, or a dtype isn't real.
    """
    reference, candidate = _checked_pair(reference, candidate)
    if reference.ndim == 0:
        raise ValueError("a scalar has no sample axis")
    errors = np.zeros(reference.shape[0], dtype=np.float64)
    for rows in row_chunks(reference.shape):
        one, two = np.asarray(reference[rows]), np.asarray(candidate[rows])
        wide = _wide_difference(one, two)
        difference = None if wide is None else _matrix(wide)
        errors[rows] = _relative_l2_of_rows(_matrix(one), _matrix(two), difference)
    return errors


def _relative_l2_of_rows(reference: _Float64, candidate: _Float64, difference: _Float64 | None) -> _Float64:
    finite = np.isfinite(reference) & np.isfinite(candidate)
    broken = _mismatches(reference, candidate, finite).any(axis=1)
    reference = np.where(finite, reference, 0.0)
    candidate = np.where(finite, candidate, 0.0)
    # One exponent for both, so that their difference can't overflow and the ratio is unchanged.
    exponents = _row_exponents(np.maximum(_row_peaks(reference), _row_peaks(candidate)))
    reference, candidate = _shifted(reference, exponents), _shifted(candidate, exponents)
    top, top_exponents = _row_norms(candidate - reference if difference is None else difference)
    bottom, bottom_exponents = _row_norms(reference)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        errors = np.ldexp(top / bottom, top_exponents - bottom_exponents)
    errors = np.where(top == 0.0, 0.0, errors)
    return np.where(broken, np.inf, errors)


def _wide_difference(reference: npt.NDArray[Any], candidate: npt.NDArray[Any]) -> _Float64 | None:
    """The difference of integers that float64 may not hold, rounded once; None where it holds both.

    Each half of such an integer fits, and so does the difference of two halves.
    """
    pair = reference.dtype, candidate.dtype
    if any(dtype.kind not in "biu" for dtype in pair) or all(dtype.itemsize < 8 for dtype in pair):
        return None
    (one_high, one_low), (two_high, two_low) = _halves(reference), _halves(candidate)
    return np.asarray((two_high - one_high) * 2.0**_HALF_OF_INT64 + (two_low - one_low), dtype=np.float64)


def _halves(array: npt.NDArray[Any]) -> tuple[_Float64, _Float64]:
    wide = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64, copy=False)
    high = (wide >> _HALF_OF_INT64).astype(np.float64)
    return high, (wide & (2**_HALF_OF_INT64 - 1)).astype(np.float64)


def _row_norms(rows: _Float64) -> tuple[_Float64, npt.NDArray[np.intc]]:
    exponents = _row_exponents(_row_peaks(rows))
    return np.sqrt(np.square(_shifted(rows, exponents)).sum(axis=1)), exponents


def _row_peaks(rows: _Float64) -> _Float64:
    return np.asarray(np.abs(rows).max(axis=1, initial=0.0), dtype=np.float64)


def _row_exponents(peaks: _Float64) -> npt.NDArray[np.intc]:
    """Gives the binary exponents to take out before squaring; 0 where none is needed."""
    exponents = np.frexp(peaks)[1]
    return np.where(np.abs(exponents) > _SAFE_EXPONENT, exponents, 0).astype(np.intc)


def _shifted(rows: _Float64, exponents: npt.NDArray[np.intc]) -> _Float64:
    if not exponents.any():
        return rows
    with np.errstate(under="ignore"):
        return np.asarray(np.ldexp(rows, -exponents[:, None]), dtype=np.float64)


def _rescaled(values: _Float64) -> tuple[_Float64, int]:
    """Takes out a power of two where the values are too large or too small to be squared."""
    exponents = _row_exponents(_row_peaks(values[None, :]))
    return _shifted(values[None, :], exponents)[0], int(exponents[0])


def _mismatches(reference: _Float64, candidate: _Float64, finite: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    # Equality of a non-finite pair holds for infinities of one sign only.
    same = (reference == candidate) | (np.isnan(reference) & np.isnan(candidate))
    return np.asarray(~finite & ~same, dtype=np.bool_)


def _norm_quotient(top: Decimal, bottom: Decimal, both_zero: float) -> float:
    """Gives the root of top / bottom, two sums of squares."""
    if not bottom:
        return math.inf if top else both_zero
    return float((top / bottom).sqrt())


def _cosine(products: Decimal, reference_squares: Decimal, candidate_squares: Decimal) -> float:
    if not reference_squares or not candidate_squares:
        return 1.0 if reference_squares == candidate_squares else 0.0
    return min(1.0, max(-1.0, float(products / (reference_squares * candidate_squares).sqrt())))


def _sqnr_db(signal: Decimal, noise: Decimal) -> float:
    if not noise:
        return math.inf
    return 10.0 * float((signal / noise).log10()) if signal else -math.inf


def comparable(reference: npt.NDArray[Any], candidate: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Two tensors as numbers: of texts 1 everywhere, and 1 where the candidate has the same, else 0.

    Args:
        reference: Numbers or texts.
        candidate: The same; numbers beside texts are those that they're written as.
    """
    if "U" not in {reference.dtype.kind, candidate.dtype.kind} or reference.shape != candidate.shape:
        return reference, candidate
    same = reference.astype(np.str_) == candidate.astype(np.str_)
    return np.ones(reference.shape, np.bool_), np.asarray(same)


def _checked_pair(
    reference: npt.NDArray[Any], candidate: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    reference, candidate = comparable(np.asarray(reference), np.asarray(candidate))
    if reference.shape != candidate.shape:
        raise ValueError(f"tensors of different shapes can't be compared: {reference.shape} and {candidate.shape}")
    for array in (reference, candidate):
        # Second half: the extension types of ml_dtypes, such as bfloat16.
        if array.dtype.kind not in "biuf" and not np.can_cast(array.dtype, np.float64):
            raise ValueError(f"only real numbers can be compared, got dtype {array.dtype}")
    return reference, candidate


def _flat(array: npt.NDArray[Any]) -> Any:
    """Gives something whose slices are flat pieces of the array, without copying it whole."""
    return array.reshape(-1) if array.flags.c_contiguous else array.flat


def row_chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Gives the samples of an array in chunks of at most `CHUNK_ELEMENTS` elements, or of one sample.

    Args:
        shape: Samples first.
    """
    rows = max(1, CHUNK_ELEMENTS // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], rows):
        yield slice(start, start + rows)


def blocks(*arrays: npt.NDArray[Any]) -> Iterator[list[npt.NDArray[Any]]]:
    """Numbers of several arrays of as many, some at a time: of arrays that are mapped, no more is read.

    Args:
        arrays: In one order, of whichever shapes and types; where it's the first axis that runs fastest in all of
            them, numbers come in that order.
    """
    if all(array.flags.f_contiguous for array in arrays):
        arrays = tuple(array.T for array in arrays)
    flat = [array.reshape(-1) if array.flags.c_contiguous else array.flat for array in arrays]
    for begin in range(0, arrays[0].size, _BLOCK):
        yield [np.asarray(item[begin : begin + _BLOCK]) for item in flat]


def _matrix(samples: npt.NDArray[Any]) -> _Float64:
    width = math.prod(samples.shape[1:])
    return np.asarray(samples, dtype=np.float64).reshape(samples.shape[0], width)

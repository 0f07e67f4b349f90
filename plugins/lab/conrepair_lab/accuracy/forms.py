"""Find the unstable formula that causes an error: each formula has an error curve of its own.

Errors are in units in the last place, beside special values that came out wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from conrepair.ground.metrics.ulps import grid_of
from conrepair.ground.operators.record import Array
from conrepair_lab.accuracy.naive.all_forms import FORMS
from conrepair_lab.accuracy.naive.form import Form
from conrepair_lab.accuracy.network import constants_of, exact
from conrepair_lab.accuracy.operators.case import Case
from conrepair_lab.accuracy.samples import CONDITIONS, condition_of, element, feed

Exact = tuple[Array, Array]
"""The values, and the magnitude that a rounding error on the way is relative to: of the terms, not of their sum."""


@dataclass(frozen=True)
class Errors:
    """The errors of one case.

    Attributes:
        ulps: Of each element, infinite where no number came; 0 where `ordinary` is false, as these aren't judged.
        relative: The errors relative to the scale of the right values.
        truth: The right values, with their scale.
        ordinary: Where the right value is a normal number, and so are the inputs.
    """

    ulps: Array
    relative: Array
    truth: Exact
    ordinary: Array


def errors_of(answer: Array, truth: Exact, inputs: Sequence[Array], dtype: str) -> Errors:
    """Compare results with exact values.

    Args:
        answer: Results of the system.
        truth: In float64, with its scale.
        inputs: In float64; elements decide over elements where they are as many.
        dtype: Of the system.
    """
    value, scale = truth
    limits = ml_dtypes.finfo(element(dtype))
    least, most = float(limits.smallest_normal), float(limits.max)
    size = np.abs(value)
    ordinary = (size <= most) & ((size >= least) | (value == 0))
    for array in inputs:
        if array.shape == value.shape:
            ordinary &= np.isfinite(array) & ((np.abs(array) >= least) | (array == 0))
    got = answer.astype(np.float64)
    size = np.fmax(np.abs(scale), size)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error = np.abs(got - value)
        error[~np.isfinite(error)] = np.inf
        error[~ordinary | (error == 0)] = 0.0
        # What should be 0 may be less than any normal number.
        units = np.where(size == 0, least, grid_of(element(dtype)).ulp(np.fmax(size, least)))
        return Errors(error / units, np.where(error == 0, 0.0, error / size), truth, ordinary)


def special_words(answer: Array, truth: Array, inputs: Sequence[Array], dtype: str) -> Iterator[str]:
    """Special values (NaN, infinities, zeros, subnormal numbers) that came out wrong, in words.

    Args:
        answer: Of the system.
        truth: In float64, without its scale.
        inputs: In float64, each of the answer's shape.
        dtype: Of the system.
    """
    kind = element(dtype)
    limits = ml_dtypes.finfo(kind)
    least = float(limits.smallest_normal)
    got = answer.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        right = truth.astype(kind).astype(np.float64)
    zero = np.all([array == 0 for array in inputs], 0)
    few = np.logical_or.reduce([(np.abs(array) < least) & (array != 0) for array in inputs])
    wrong = {
        "{got} instead of NaN": np.isnan(right) & ~np.isnan(got),
        "{got} instead of {right}": np.isinf(right) & (got != right),
        "{got} instead of a number": np.isfinite(right) & ~np.isfinite(got) & ~np.all(np.isfinite(inputs), 0),
        "0 loses its sign": (right == 0) & (got == 0) & (np.signbit(right) != np.signbit(got)) & zero,
        "subnormal results become 0": (np.abs(right) < least) & (right != 0) & (got == 0) & ~few,
        "subnormal inputs are taken as 0": few & (np.abs(right) >= least) & (np.abs(got - right) > np.abs(right) / 2),
    }
    for words, places in wrong.items():
        if places.any():
            place = tuple(index[0] for index in np.nonzero(places))
            where = ", ".join(f"{array[place]:.4g}" for array in inputs)
            found = words.format(got=f"{got[place]:.4g}", right=f"{right[place]:.4g}")
            yield found if "subnormal" in words else f"{found} at {where}"


NONE_KNOWN = "no form known"

_ALIKE = 0.5
_MOST_BITS = 24.0
_GOOD = 4.0  # units that nothing is lost with


def likeliest_form(errors: Mapping[Case, Errors], dtype: str) -> str:
    """The formula whose errors are as large as the measured ones, at the same inputs.

    Args:
        errors: Of all cases of an operator.
        dtype: Name of the element type.

    Returns:
        In words; `NONE_KNOWN` where none is near.
    """
    operator = next(iter(errors)).operator
    seen = np.concatenate([error_curve(case, found, dtype) for case, found in errors.items()])
    best, words = _ALIKE, NONE_KNOWN
    for form in FORMS.get(operator, ()):
        curves = []
        for case, found in errors.items():
            inputs = [feed(name, dtype) for name in case.feeds.values()]
            answer = answer_of(form, case, dtype)
            curves.append(error_curve(case, errors_of(answer, found.truth, inputs, dtype), dtype))
        likeness = alike(seen, np.concatenate(curves))
        if likeness > best:
            best, words = likeness, form.words
    return words


def answer_of(form: Form, case: Case, dtype: str) -> Array:
    """What a system gives for a case that has a form, in its element type."""
    kind, inputs = element(dtype), [feed(name, dtype) for name in case.feeds.values()]
    constants = constants_of(case, dtype)
    if form.compute is not None:
        own = [array for array in constants.values() if array.dtype == kind]
        return np.asarray(form.compute(*inputs, *own))
    rounded = {name: _ten_bits(array) for name, array in constants.items()}
    return exact(replace(case, constants=rounded), [*map(_ten_bits, inputs)], dtype).astype(kind)


def _ten_bits(x: Array) -> Array:
    mantissa, exponent = np.frexp(x.astype(np.float64))
    return np.asarray(np.ldexp(np.rint(mantissa * 2048) / 2048, exponent))


def alike(one: Array, two: Array) -> float:
    """The overlap of two error curves in lost bits: 1 if they're the same, 0 if they share nothing."""
    return float(np.minimum(one, two).sum() / max(np.maximum(one, two).sum(), 1.0))


def error_curve(case: Case, errors: Errors, dtype: str) -> Array:
    """Bits lost at most, by the inputs' magnitudes, or by the conditions of sums."""
    if case.size:
        rows = errors.ulps.reshape(len(errors.ulps), -1).max(1)
        bins, count = condition_of(len(rows)), len(CONDITIONS)
        values = rows
    else:
        bins = np.zeros(errors.ulps.shape, np.int64)
        finest = 21 if len(case.feeds) == 1 else 25
        for name in case.feeds.values():
            pattern = feed(name, dtype).astype(np.float32).view(np.uint32) >> finest
            bins = bins * (1 << (32 - finest)) + pattern
        bins, values, count = bins.ravel(), errors.ulps.ravel(), (1 << (32 - finest)) ** len(case.feeds)
    worst = np.zeros(count)
    np.maximum.at(worst, bins, values)
    return np.minimum(np.log2(np.maximum(worst / _GOOD, 1.0)), _MOST_BITS)

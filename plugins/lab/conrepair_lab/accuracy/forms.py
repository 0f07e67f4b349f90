"""Find the unstable formula that causes an error: each formula has an error curve of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from conrepair.ground.operators.record import Array
from conrepair_lab.accuracy.errors import Errors, errors_of
from conrepair_lab.accuracy.naive.all_forms import FORMS
from conrepair_lab.accuracy.naive.form import Form
from conrepair_lab.accuracy.network import constants_of, exact
from conrepair_lab.accuracy.operators.case import Case
from conrepair_lab.accuracy.samples import CONDITIONS, condition_of, element, feed

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

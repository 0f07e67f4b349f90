"""Test whether an unstable formula causes an error: computed in the system's type, it has the same errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from onnx.reference import ReferenceEvaluator

from conrepair.ground.equations.expression import names_in
from conrepair.ground.equations.writing import model_of
from conrepair.ground.forms.form import Form, Place, Writing
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.metrics.ulps import grid_of
from conrepair_lab.accuracy.forms import alike
from conrepair_lab.accuracy.naive.all_forms import FORMS as KERNELS

_OPSET = 21  # of the models in which expressions are computed
_BINS, _IN_A_BIN = 64, 8  # of an error curve, at most; values, at least
_LOUD = 4.0  # bits lost: below, a good kernel's rounding would look alike
_MOST_BITS = 30.0


def explains(form: Form, place: Place, values: Sequence[Array], given: Array, exact: Array) -> float:
    """How well a form explains what a system computed.

    Args:
        form: Supposed.
        place: Where.
        values: The tensors of `place.inputs`, as the system read them.
        given: What it computed, in its element type.
        exact: What's right, in float64.

    Returns:
        0, where the errors are others, to 1, where they're as large at the same inputs, with the same signs.
    """
    writing, dtype = form.writings[place.writing], given.dtype
    exact = np.asarray(exact, np.float64)
    unit = grid_of(dtype).ulp(exact)
    own = [np.asarray(value, dtype) for value in values]
    order = np.abs(exact) if not own or own[0].shape != exact.shape else own[0].astype(np.float64)
    seen, best = (given.astype(np.float64) - exact) / unit, 0.0
    with np.errstate(all="ignore"):
        for answer in _answers(writing, own, place.numbers):
            expected = (answer.astype(np.float64).reshape(exact.shape) - exact) / unit
            best = max(best, likeness(seen, expected, order))
        if writing.sizes:
            sizes = computed(writing.sizes, _named(writing, own, np.float64), place.numbers)
            sizes = sizes.reshape(exact.shape) if sizes.size == exact.size else np.broadcast_to(sizes, exact.shape)
            best = max(best, likeness(np.abs(seen), sizes / unit * float(ml_dtypes.finfo(dtype).eps) / 2, order))
    return best


def _answers(writing: Writing, values: Sequence[Array], numbers: Mapping[str, Any]) -> Iterator[Array]:
    """What systems may compute that have a form, in the values' element type."""
    kernels = KERNELS.get(writing.call.operator, []) if writing.call.is_plain else []
    if not (writing.naive or writing.sizes):
        meant = (form.compute for form in kernels if writing.kernels in form.words)
        yield from (compute(*values) for compute in meant if compute is not None)
    text = writing.naive or ("" if kernels or writing.sizes else writing.pattern)
    for naive in filter(None, text.split(" | ")):
        yield computed(naive, _named(writing, values, None), numbers)


def _named(writing: Writing, values: Sequence[Array], dtype: Any) -> dict[str, Array]:
    """Values by the names that they have in a writing."""
    return {name: np.asarray(value, dtype) for name, value in zip(names_in(writing.call), values, strict=True)}


def likeness(seen: Array, expected: Array, order: Array) -> float:
    """How much two error curves, in bits lost, have in common: where they're high, how high, their signs.

    Args:
        seen: Errors in units in the last place.
        expected: Those of a form.
        order: What both are curves over, of the same size.

    Returns:
        From 0 to 1; 0 where nothing was seen beyond a good kernel's rounding.
    """
    sorted_by = np.argsort(order, axis=None, kind="stable")
    curves = []
    for errors in (seen, expected):
        bits = np.log2(np.maximum(np.nan_to_num(np.abs(errors), nan=np.inf, posinf=np.inf), 1.0)).ravel()[sorted_by]
        parts = np.array_split(np.minimum(bits, _MOST_BITS), max(min(_BINS, bits.size // _IN_A_BIN), 1))
        curves.append(np.array([part.max() for part in parts]))
    one, two = curves
    loud = np.maximum(one, two) > _LOUD
    if not (one > _LOUD).any():
        return 0.0
    common = alike(one[loud], two[loud])
    large = np.minimum(np.abs(seen), np.abs(expected)) > 2.0**_LOUD
    if large.any():
        common *= float((np.sign(seen) == np.sign(expected))[large].mean())
    varies = one.std() > 0 and two.std() > 0
    return common * max(float(np.corrcoef(one, two)[0, 1]), 0.0) if varies else common


def computed(text: str, values: Mapping[str, Array], numbers: Mapping[str, Any]) -> Array:
    """What an expression computes in the element type of the values, by ONNX's reference.

    Args:
        text: The expression.
        values: By its names.
        numbers: Attributes and axes by its names.
    """
    model = model_of(text, values, {**numbers, "keepdims": 1}, _OPSET)
    found: Array = ReferenceEvaluator(model).run(None, dict(values))[0]
    return found

"""Unstable forms are recognised by their errors."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from conrepair_lab.accuracy.forms import NONE_KNOWN, Errors, alike, answer_of, error_curve, errors_of, likeliest_form
from conrepair_lab.accuracy.naive.all_forms import FORMS
from conrepair_lab.accuracy.naive.form import Form
from conrepair_lab.accuracy.operators.all_operators import FAMILIES
from conrepair_lab.accuracy.operators.case import Case
from conrepair_lab.accuracy.samples import feed
from conrepair_lab.accuracy.sweep import truth_of

CASES = [case for family in FAMILIES.values() for case in family]
# Of sums only the sizes at which they differ.
LARGEST = {case.operator: case for case in CASES}
PAIRS = [(operator, form) for operator, forms in FORMS.items() if operator in LARGEST for form in forms]


def _errors(case: Case, form: Form) -> Errors:
    inputs = [feed(name, "float32") for name in case.feeds.values()]
    with np.errstate(all="ignore"):
        return errors_of(answer_of(form, case, "float32"), truth_of(case, "float32"), inputs, "float32")


@functools.cache
def _of_form(operator: str, form: Form) -> tuple[Errors, np.ndarray]:
    case = LARGEST[operator]
    errors = _errors(case, form)
    return errors, error_curve(case, errors, "float32")


@pytest.mark.parametrize(("operator", "form"), PAIRS, ids=[f"{name}: {form.words}" for name, form in PAIRS])
def test_a_form_is_recognised(operator: str, form: Form) -> None:
    errors, curve = _of_form(operator, form)
    with np.errstate(all="ignore"):
        found = likeliest_form({LARGEST[operator]: errors}, "float32")
    if curve.max() == 0:  # a form that is as good as others in this type
        assert found == NONE_KNOWN
        return
    # Of forms that lose the same digits at the same inputs either may be named.
    assert found in [other.words for other in FORMS[operator] if alike(curve, _of_form(operator, other)[1]) > 0.9]


@pytest.mark.parametrize("operator", ["Tanh", "Softplus", "Exp", "LayerNormalization"])
def test_other_errors_have_no_form(operator: str) -> None:
    case = LARGEST[operator]
    inputs = [feed(name, "float32") for name in case.feeds.values()]
    truth = truth_of(case, "float32")
    with np.errstate(over="ignore"):
        answer = (truth[0] * (1 + 1e-3 * np.random.default_rng(0).normal(size=truth[0].shape))).astype(np.float32)
    with np.errstate(all="ignore"):
        assert likeliest_form({case: errors_of(answer, truth, inputs, "float32")}, "float32") == NONE_KNOWN


def test_curves_are_alike_by_place_and_size() -> None:
    one = np.array([0.0, 10.0, 20.0, 0.0])
    assert alike(one, one) == 1
    assert alike(one, one[::-1]) == pytest.approx(20 / 40)
    assert alike(one, np.zeros(4)) == 0

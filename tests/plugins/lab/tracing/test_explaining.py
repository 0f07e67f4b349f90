"""Whether errors are recognised by their curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import unstable_forms as unstable
from unstable_forms import in_onnxruntime, in_tvm

from conrepair.ground.forms.all_forms import FORMS, found
from conrepair_lab.accuracy.naive.all_forms import FORMS as KERNELS
from conrepair_lab.tracing.formed import computed, explains, likeness

Array = np.ndarray[Any, Any]
SURE, NOT = 0.8, 0.4


def explained(model: onnx.ModelProto, values: list[Array], given: Array, exact: Array) -> dict[str, float]:
    """By form, at the last node."""
    places = [place for place in found(model) if place.output == "y"]
    return {place.form: explains(FORMS[place.form], place, values, given, exact) for place in places}


@pytest.mark.parametrize(
    "name", ["tanh_by_exp", "tanh_by_square", "log_exp", "elu", "selu", "celu", "expm1", "sigmoid"]
)
def test_what_onnx_runtime_gets_wrong_is_explained(name: str) -> None:
    case = unstable.CASES[name]
    model = unstable.network(case.body, case.x.shape)
    scores = explained(model, [case.x], in_onnxruntime(model, case.x), case.right)
    assert scores[case.form] > SURE
    assert all(score < NOT for form, score in scores.items() if form != case.form)


@pytest.mark.parametrize("name", ["tanh", "softplus"])
def test_what_tvm_gets_wrong_is_explained(name: str, tmp_path: Path) -> None:
    case = unstable.CASES[name]
    model = unstable.network(case.body, case.x.shape)
    scores = explained(model, [case.x], in_tvm(model, case.x, tmp_path / "build"), case.right)
    assert scores[case.form] > SURE


@pytest.mark.parametrize("name", ["tanh", "atanh", "softplus", "mish"])
def test_a_good_kernel_has_nothing_to_explain(name: str) -> None:
    case = unstable.CASES[name]
    model = unstable.network(case.body, case.x.shape)
    assert set(explained(model, [case.x], in_onnxruntime(model, case.x), case.right).values()) == {0.0}


def test_another_error_is_another_form() -> None:
    """The sigmoid's two forms lose digits at other arguments, and a wrong factor is neither."""
    x = np.linspace(-80, 20, 2000, dtype=np.float32)
    model = unstable.network("y = Sigmoid(x)", x.shape)
    right = unstable.CASES["sigmoid"].truth(x.astype(np.float64))
    fast = next(form for form in KERNELS["Sigmoid"] if "fast" in form.words).compute(x)
    scores = explained(model, [x], fast, right)
    assert scores["fast e^x"] > SURE > NOT > scores["bounded argument"]
    assert max(explained(model, [x], (right * 1.01).astype(np.float32), right).values()) < NOT


def test_errors_of_the_other_sign_are_not_explained() -> None:
    x = unstable.both_signs(1e-30, 20)
    model = unstable.network("a = Exp(x) y = Sub(a, one)", x.shape)
    exact = np.expm1(x.astype(np.float64))
    naive = np.exp(x) - np.float32(1)
    mirrored = (2 * exact - naive).astype(np.float32)
    assert explained(model, [x], naive, exact)["e^x - 1"] > SURE
    assert explained(model, [x], mirrored, exact)["e^x - 1"] < NOT


def test_a_variance_in_one_pass_is_recognised_in_a_normalization() -> None:
    x = unstable.CASES["layer_norm"].x
    model = unstable.network("y = LayerNormalization(x, ones)", x.shape)
    squares = (x * x).mean(1, keepdims=True) - x.mean(1, keepdims=True) ** 2
    given = (x - x.mean(1, keepdims=True)) / np.sqrt(np.maximum(squares, 0) + np.float32(1e-5))
    scores = explained(model, [x, np.ones(64)], given, unstable.normalized(x.astype(np.float64)))
    assert scores["E[x^2] - E[x]^2"] > scores["x - E[x]"]
    assert scores["E[x^2] - E[x]^2"] > SURE


def test_a_cancelled_sum_is_explained_whatever_its_order() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(256, 300))
    rows[:, -1] = -rows[:, :-1].sum(1) + np.geomspace(1e-6, 10, 256)
    x = rng.permuted(rows.astype(np.float32), axis=1)
    exact = x.astype(np.float64).sum(1, keepdims=True)
    model = unstable.network("y = ReduceSum(x, last)", x.shape)
    for given in (x.cumsum(1)[:, -1:], x[:, ::-1].cumsum(1)[:, -1:], x.sum(1, keepdims=True)):
        assert explained(model, [x], given, exact)["order of a sum"] > 0.6
    rounded = exact.astype(np.float32)
    assert explained(model, [x], rounded, exact)["order of a sum"] == 0.0


def test_half_precision_is_told_from_float32() -> None:
    x = np.random.default_rng(4).normal(size=(200, 400)).astype(np.float16)
    exact = x.astype(np.float64).sum(1, keepdims=True)
    model = unstable.network("y = ReduceSum(x, last)", x.shape, dtype="float16")
    added = x.cumsum(1, dtype=np.float16)[:, -1:]
    assert explained(model, [x], added, exact)["half precision sums"] > 0.6
    assert (
        explained(model, [x], x.sum(1, keepdims=True, dtype=np.float32).astype(np.float16), exact)[
            "half precision sums"
        ]
        == 0.0
    )


def test_convolutions_products_and_contractions_have_sizes() -> None:
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(1, 3, 6, 6)), rng.normal(size=(2, 3, 3, 3))
    given = {"strides": [1, 1], "pads": [0, 0, 0, 0], "group": 1, "dilations": [1, 1], "auto_pad": "NOTSET"}
    sizes = {writing.pattern: writing.sizes for form in FORMS.values() for writing in form.writings}
    found = computed(sizes["Conv(x, y, **given)"], {"x": x, "y": w}, {"given": given})
    windows = np.lib.stride_tricks.sliding_window_view(np.abs(x), (3, 3), (2, 3))
    np.testing.assert_allclose(found, np.einsum("nchwij,ocij->nohw", windows, np.abs(w)), rtol=1e-12)
    assert computed(sizes["MatMul(x, y)"], {"x": -x, "y": x}, {}).min() >= 0
    plain = {name: np.array([2.0, -3.0]) for name in "xyzw"}
    np.testing.assert_array_equal(computed(sizes["x * y - z * w"], plain, {}), [8.0, 18.0])


def test_curves_that_rise_elsewhere_are_not_alike() -> None:
    order = np.linspace(0, 1, 640)
    low, high = np.where(order < 0.5, 1e4, 1.0), np.where(order < 0.5, 1.0, 1e4)
    assert likeness(low, low, order) == 1.0
    assert likeness(low, high, order) == 0.0
    assert 0.5 < likeness(low, low / 16, order) < 1.0
    assert likeness(np.ones(640), low, order) == 0.0

"""Outputs read as answers: which are scores, which are probabilities, which are right."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from conrepair.ground.data.tensor_spec import Quantization, TensorSpec
from conrepair.verdicts.evaluate.answers import (
    as_scores,
    best_classes,
    holds_probabilities,
    is_scores,
    probabilities,
    right_answers,
)

LOGITS = np.random.default_rng(0).normal(size=(6, 10)) * 3
SOFT = softmax(LOGITS, axis=1)


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((4, 5), "float32", (4, 5)),
        ((4, 5), "int64", None),
        ((4, 1), "float32", None),
        ((4,), "float32", None),
        ((4, 5, 1, 1), "float32", (4, 5)),
        ((4, 1, 1, 5), "float32", (4, 5)),
        ((4, 5, 2), "float32", None),
        ((4, 1, 1), "float32", None),
    ],
)
def test_scores_are_one_for_each_of_several_classes(
    shape: tuple[int, ...], dtype: str, expected: tuple[int, ...] | None
) -> None:
    array = np.zeros(shape, dtype)
    found = as_scores(array)
    assert (None if found is None else found.shape) == expected
    assert is_scores(array) is (expected == shape)


def spec(dtype: str = "float32", scale: float | None = None, zero: int = 0) -> TensorSpec:
    return TensorSpec("y", (6, 10), dtype, None if scale is None else Quantization(scale, zero))


def rounded(steps: float) -> np.ndarray:
    return np.rint(SOFT * steps) / steps


@pytest.mark.parametrize(
    ("scores", "output", "quantized", "expected"),
    [
        (SOFT, spec(), False, True),
        (LOGITS, spec(), False, False),
        (SOFT.astype(np.float16), spec("float16"), False, True),
        (LOGITS, spec("int8", 1 / 256, -128), True, True),  # a softmax's range says it
        (LOGITS, spec("uint8", 1 / 256, 0), True, True),
        (LOGITS, spec("uint8", 1 / 255, 0), True, True),
        (LOGITS, spec("uint8", 1 / 250, 0), True, False),
        (LOGITS, spec("uint8", 1 / 260, 0), True, False),
        (LOGITS, spec("int8", 1 / 256, -127), True, False),
        (SOFT, spec("int8", 0.1, 0), True, True),  # it adds up to 1
        (np.full((6, 10), 40 / 256), spec(), True, True),  # in its steps, though it adds up to more
        (np.full((6, 10), 40 / 255), spec(), True, True),
        (np.full((6, 10), 40 / 256), spec(), False, False),
        (np.full((6, 10), 40.3 / 256), spec(), True, False),
        (np.full((6, 10), 264 / 256), spec(), True, False),
        (np.full((6, 10), -40 / 256), spec(), True, False),
        (np.full((6, 10), 1.0), spec(), True, True),
        (np.full((6, 10), 0.0), spec(), True, True),
    ],
)
def test_probabilities_are_known_by_sums_or_by_steps(
    scores: np.ndarray, output: TensorSpec, quantized: bool, expected: bool
) -> None:
    assert holds_probabilities(scores, output, quantized=quantized) is expected


def test_a_half_precision_softmax_adds_up_as_well_as_its_type_can() -> None:
    classes = 4000
    flat = np.full((2, classes), 1 / classes) * (1 + 3e-3)
    assert not holds_probabilities(flat, spec(), quantized=False)
    assert holds_probabilities(flat, spec("float16"), quantized=False)
    assert holds_probabilities(flat, spec("bfloat16"), quantized=False)


def test_probabilities_are_not_softmaxed_again() -> None:
    assert np.array_equal(probabilities(SOFT, normalized=True), SOFT)
    assert np.allclose(probabilities(LOGITS, normalized=False), SOFT)


def test_the_best_classes_first() -> None:
    found = np.array(best_classes(LOGITS, 3))
    assert np.array_equal(found[..., 0], np.argsort(-LOGITS, axis=1)[:, :3])
    assert np.array_equal(found[..., 1], -np.sort(-LOGITS, axis=1)[:, :3])
    assert np.array(best_classes(SOFT, 99)).shape == (6, 10, 2)
    assert {type(score) for answer in best_classes(np.arange(6).reshape(2, 3), 1) for _, score in answer} == {float}


@pytest.mark.parametrize(("classes", "shift"), [(1000, 0), (1001, 1), (10, 0), (1002, 0)])
def test_right_answers_are_counted_with_a_background_class_in_front(classes: int, shift: int) -> None:
    scores = np.zeros((4, classes))
    scores[np.arange(4), [3, 0, 5, 7]] = 1
    labels = [3 - shift, 0 if shift else 1, None, 7 - shift]
    assert right_answers(scores, labels) == (2, 3)
    assert right_answers(scores[:, :, None, None], labels) == (2, 3)


def test_no_label_or_no_scores_is_no_answer() -> None:
    assert right_answers(LOGITS, [None] * 6) is None
    assert right_answers(LOGITS, []) is None
    assert right_answers(np.zeros((6, 1)), [0] * 6) is None
    assert right_answers(-np.eye(3) + 1, [0, 1, None]) == (0, 2)
    assert right_answers(np.eye(3), [0, 2, None]) == (1, 2)


@pytest.mark.parametrize("step", [1 / 127, 1 / 255, 0.97 / 127])
def test_a_softmax_in_the_steps_of_any_range_is_one(step: float) -> None:
    exact = probabilities(np.random.default_rng(0).normal(size=(20, 6)) * 2, normalized=False)
    stored = (np.rint(exact / step) * step).astype(np.float32)
    spec = TensorSpec("y", ("batch", 6), "float32")
    assert holds_probabilities(stored, spec, quantized=True)
    assert not holds_probabilities(stored * np.float32(1.5), spec, quantized=True)

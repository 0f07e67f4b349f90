"""Relations that are made are found again, and what has none is not explained."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from conrepair.diagnosis.localization.recipes.input_relation import explain_inputs

MEAN, STD = (np.float32(values).reshape(3, 1, 1) for values in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    """Smooth, in [0, 1], different along both axes: [4, 3, 32, 32]."""
    generator = np.random.default_rng(0)
    coarse = torch.from_numpy(generator.random((4, 3, 6, 6), np.float32))
    return torch.nn.functional.interpolate(coarse, (32, 32), mode="bilinear").numpy()


def test_nothing_changed(pictures: np.ndarray) -> None:
    relation = explain_inputs(pictures, pictures.copy())
    assert relation is not None
    assert relation.is_identity


def test_rounding_is_nothing(pictures: np.ndarray) -> None:
    relation = explain_inputs(pictures, (pictures / 3).astype(np.float32) * 3)
    assert relation is not None
    assert relation.is_identity


def test_channels_and_numbers(pictures: np.ndarray) -> None:
    relation = explain_inputs(pictures, ((pictures[:, ::-1] - MEAN) / STD).astype(np.float32))
    assert relation is not None
    assert relation.numbers.order == (2, 1, 0)
    np.testing.assert_allclose(relation.numbers.matrix[:, ::-1], np.diag(1 / STD.ravel()), rtol=1e-5)
    np.testing.assert_allclose(relation.numbers.offsets, (-MEAN / STD).ravel(), rtol=1e-5)
    assert "RGB against BGR" in relation.evidence
    assert "ImageNet's normalisation" in relation.evidence
    assert not relation.is_identity


@pytest.mark.parametrize(("factor", "offset", "words"), [(255, 0, "times 255"), (2, -1, "[0, 1] to [-1, 1]")])
def test_one_factor(pictures: np.ndarray, factor: float, offset: float, words: str) -> None:
    relation = explain_inputs(pictures, pictures * np.float32(factor) + np.float32(offset))
    assert relation is not None
    assert relation.numbers.matrix == pytest.approx(np.array([[factor]]), rel=1e-5)
    assert relation.numbers.offsets == pytest.approx([offset], abs=1e-4)
    assert words in relation.evidence


def test_a_mean_of_no_name(pictures: np.ndarray) -> None:
    relation = explain_inputs(pictures, pictures - np.float32(0.4321))
    assert relation is not None
    assert relation.numbers.offsets == pytest.approx([-0.4321], abs=1e-5)
    assert "x becomes 1 x - 0.4321" in relation.evidence


@pytest.mark.parametrize("axes", [(0, 1, 3, 2), (0, 2, 3, 1), (0, 3, 2, 1)])
def test_axes(pictures: np.ndarray, axes: tuple[int, ...]) -> None:
    relation = explain_inputs(pictures, 2 * pictures.transpose(axes))
    assert relation is not None
    assert (relation.arranged.axes, relation.arranged.reshaped, relation.arranged.flipped) == (axes, False, ())
    assert relation.numbers.matrix == pytest.approx(np.array([[2]]))


def test_reshape_in_place_of_a_transpose(pictures: np.ndarray) -> None:
    relation = explain_inputs(pictures, pictures.reshape(4, 32, 32, 3))
    assert relation is not None
    assert relation.arranged.reshaped
    twice = explain_inputs(pictures, pictures.transpose(0, 2, 3, 1).reshape(pictures.shape))
    assert twice is not None
    assert (twice.arranged.axes, twice.arranged.reshaped) == ((0, 2, 3, 1), True)


@pytest.mark.parametrize("flipped", [(2,), (3,), (2, 3)])
def test_flips(pictures: np.ndarray, flipped: tuple[int, ...]) -> None:
    relation = explain_inputs(pictures, np.flip(pictures, flipped))
    assert relation is not None
    assert relation.arranged.flipped == flipped


def test_mixed_channels(pictures: np.ndarray) -> None:
    matrix = np.float32([[0.299, 0.587, 0.114], [-0.147, -0.289, 0.436], [0.615, -0.515, -0.1]])
    relation = explain_inputs(pictures, np.einsum("ij,njhw->nihw", matrix, pictures))
    assert relation is not None
    assert relation.numbers.order is None
    np.testing.assert_allclose(relation.numbers.matrix, matrix, atol=1e-5)


def test_bytes_of_a_quantized_input(pictures: np.ndarray) -> None:
    stored = np.rint(pictures * 255).astype(np.uint8)
    assert explain_inputs(pictures, stored, tolerance=1e-4) is None
    relation = explain_inputs(pictures, stored, tolerance=1e-2)
    assert relation is not None
    assert relation.numbers.matrix == pytest.approx(np.array([[255]]), rel=1e-3)


def test_other_arrays_than_pictures() -> None:
    tokens = np.random.default_rng(0).normal(size=(3, 7, 16))
    relation = explain_inputs(tokens, tokens.swapaxes(1, 2))
    assert relation is not None
    assert relation.arranged.axes == (0, 2, 1)
    plain = explain_inputs(tokens[:, 0], 3 * tokens[:, 0] + 1)
    assert plain is not None
    assert (plain.numbers.matrix.ravel(), plain.numbers.offsets) == (pytest.approx((3,)), pytest.approx((1,)))


def test_what_has_no_explanation(pictures: np.ndarray) -> None:
    generator = np.random.default_rng(1)
    assert explain_inputs(pictures, generator.random(pictures.shape)) is None
    assert explain_inputs(pictures, np.tanh(3 * pictures)) is None
    assert explain_inputs(pictures, np.roll(pictures, 1, axis=3)) is None  # a crop elsewhere
    assert explain_inputs(pictures, np.zeros_like(pictures)) is None
    assert explain_inputs(pictures, np.full_like(pictures, np.nan)) is None
    assert explain_inputs(pictures, pictures[:, :, :16]) is None
    assert explain_inputs(pictures, pictures[:2]) is None

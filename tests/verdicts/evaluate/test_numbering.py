"""Labels that number classes otherwise than a model does, told from models that are often wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.verdicts.evaluate.numbering import other_numbering
from conrepair.verdicts.evaluate.run import HeldRun, Run

CLASSES = ("circle", "cross", "ring", "square", "triangle")  # in alphabetical order
ORDER = (0, 3, 4, 1, 2)  # of the model: the label of each of its outputs
COUNT = 100


def run_of(predicted: np.ndarray) -> Run:
    scores = np.eye(len(CLASSES), dtype=np.float32)[predicted]
    spec = TensorSpec("scores", ("batch", len(CLASSES)), "float32")
    return HeldRun(name="a", outputs=(spec,), folder=Path(), count=len(scores), held={"scores": scores})


def predictions(right: float) -> tuple[np.ndarray, list[int | None]]:
    """What a model gives that is right so often, and labels in alphabetical order."""
    generator = np.random.default_rng(0)
    outputs = np.arange(COUNT) % len(CLASSES)
    labels: list[int | None] = [ORDER[output] for output in outputs]
    wrong = generator.random(COUNT) >= right
    return np.where(wrong, generator.integers(0, len(CLASSES), COUNT), outputs), labels


def test_another_order_is_found_and_said_as_a_list() -> None:
    predicted, labels = predictions(0.9)
    found = other_numbering(run_of(predicted), labels)
    assert found is not None
    assert found.outputs == {0: 0, 1: 3, 2: 4, 3: 1, 4: 2}
    assert (found.right, found.otherwise, found.count) == (20, 90, 100)
    words = found.words(CLASSES)
    assert "20 % of the original's predictions are right as they're numbered now, 90 % would be with " in words
    assert "0 = circle, 1 = square, 2 = triangle, 3 = cross, 4 = ring; give the model's order by --classes" in words
    assert "1 is output 3, 2 is output 4, 3 is output 1, ..." in found.words()


def test_labels_that_count_from_one_are_found() -> None:
    predicted = np.arange(COUNT) % 4
    found = other_numbering(run_of(predicted), [int(item) + 1 for item in predicted])
    assert found is not None
    assert found.outputs == {1: 0, 2: 1, 3: 2, 4: 3}


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4])
def test_a_model_that_is_often_wrong_isnt_excused(share: float) -> None:
    predicted, labels = predictions(share)
    assert other_numbering(run_of(predicted), labels) is None
    alike = [ORDER.index(int(label)) for label in labels if label is not None]
    assert other_numbering(run_of(predicted), alike) is None


def test_few_samples_fit_any_order_and_prove_none() -> None:
    predicted, labels = predictions(1.0)
    assert other_numbering(run_of(predicted[:10]), labels[:10]) is None
    assert other_numbering(run_of(predicted), [None] * COUNT) is None


def test_a_right_numbering_is_believed() -> None:
    predicted, _ = predictions(0.9)
    assert other_numbering(run_of(predicted), [place % len(CLASSES) for place in range(COUNT)]) is None

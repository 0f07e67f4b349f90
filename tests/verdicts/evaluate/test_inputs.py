"""Which inputs are answered otherwise, and how far each answer is off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.verdicts.evaluate.compare import compare_runs
from conrepair.verdicts.evaluate.inputs import ComparedInput, compared_inputs
from conrepair.verdicts.evaluate.run import Run
from conrepair.verdicts.evaluate.tolerance import Tolerance

NAMES = tuple(f"{place}.png" for place in range(12))


def run(folder: Path, array: np.ndarray) -> Run:
    folder.mkdir()
    np.save(folder / "output_0.npy", array)
    np.save(folder / "seconds.npy", np.full(len(array), 0.01))
    spec = TensorSpec("y", ("batch", *array.shape[1:]), array.dtype.name)
    return Run(name=folder.name, outputs=(spec,), folder=folder, count=len(array), operators=100)


def compared(
    folder: Path, right: np.ndarray, other: np.ndarray, only: tuple[int, ...] | None = None
) -> tuple[ComparedInput, ...]:
    one, two = run(folder / "right", right), run(folder / "other", other)
    (output,) = compare_runs(one, two, Tolerance()).outputs
    return compared_inputs(output, one, two, NAMES[: len(right)], [3], classes=2, only=only)


@pytest.fixture
def scores() -> np.ndarray:
    """The best class is the sample's number."""
    return np.eye(12, dtype=np.float32) * 4 + 1


def test_other_answers_come_first_then_the_largest_errors(tmp_path: Path, scores: np.ndarray) -> None:
    other = scores.copy()
    other[7] *= 2
    other[3] *= 1.5
    other[5, 6] = 5.5
    first, second, third, *rest = compared(tmp_path, scores, other)
    assert [first.name, second.name, third.name] == ["5.png", "7.png", "3.png"]
    assert (first.differs, second.differs, third.differs) == (True, False, False)
    assert (first.reference, first.candidate) == (((5, 5.0), (0, 1.0)), ((6, 5.5), (5, 5.0)))
    assert (first.max_abs, second.max_abs) == (4.5, 5.0)
    assert (second.relative_l2, third.relative_l2) == pytest.approx((1.0, 0.5))
    assert all(item.relative_l2 == 0 for item in rest)
    assert {item.label for item in (first, second, third, *rest)} == {None, 3}


def test_only_those_that_are_wanted(tmp_path: Path, scores: np.ndarray) -> None:
    assert [item.index for item in compared(tmp_path, scores, 2 * scores, only=(8, 2))] == [8, 2]


def test_outputs_that_are_no_scores_have_no_classes(tmp_path: Path) -> None:
    """Integers that float64 doesn't hold are told apart."""
    large = np.full((4, 3), 2**53, np.int64)
    other = large.copy()
    other[2, 1] += 1
    first, *rest = compared(tmp_path, large, other)
    assert (first.index, first.differs, first.reference, first.candidate) == (2, None, (), ())
    assert first.relative_l2 > 0
    assert {item.relative_l2 for item in rest} == {0}

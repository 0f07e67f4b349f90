"""Outputs that are kept as they come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conrepair.application.jobs.recorder import Recorder, SizesVaryError
from conrepair.ground.data.sample_axes import OutputAxes
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.verdicts.evaluate.run import Run

AXES = OutputAxes((), (), {})


def test_sizes_that_vary_are_noticed(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, 8, AXES, fixed=False)
    with pytest.raises(SizesVaryError):
        recorder.record(0, 4, 4, {"y": np.zeros((3, 2))}, 0.0)
    recorder = Recorder(tmp_path, 8, AXES, fixed=False)
    recorder.record(0, 4, 4, {"y": np.zeros((4, 2))}, 0.0)
    with pytest.raises(SizesVaryError):
        recorder.record(4, 4, 4, {"y": np.zeros((4, 3))}, 0.0)


@pytest.mark.parametrize(
    ("axis", "shapes"), [(0, [(2, 3), (5, 3), (0, 3)]), (1, [(3, 2), (3, 5), (3, 0)]), (1, [(1, 2, 3), (1, 5, 3)])]
)
def test_rows_one_by_one(axis: int, shapes: list[tuple[int, ...]], tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, len(shapes), AXES, fixed=False, singly=True)
    arrays = [np.random.default_rng(0).normal(size=shape) for shape in shapes]
    for place, array in enumerate(arrays):
        recorder.record(place, 1, 1, {"y": array, "z": np.ones((1, 4))}, 0.0)
    assert recorder.finish() == len(shapes)
    specs = TensorSpec("y", ("n", 3), "float64"), TensorSpec("z", ("n", 4), "float64")
    run = Run(name="run", outputs=specs, folder=tmp_path, count=len(shapes))
    assert run.lengths["y"].tolist() == [shape[axis] for shape in shapes]
    assert run.arrays["y"].shape == (sum(shape[axis] for shape in shapes), 3)
    assert run.arrays["z"].shape == (len(shapes), 4)
    first = run.first(1)
    assert first.arrays["y"].shape == (shapes[0][axis], 3)


def test_batches_of_a_fixed_size(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, 3, AXES, fixed=True, singly=True)
    recorder.record(0, 2, 2, {"y": np.zeros((4, 3)), "z": np.zeros((2, 5))}, 0.0)
    recorder.record(2, 1, 2, {"y": np.ones((1, 3)), "z": np.ones((2, 5))}, 0.0)
    recorder.finish()
    assert np.load(tmp_path / "lengths_0.npy").tolist() == [4, 0, 1]  # of a batch, whose first sample stands for all
    assert np.load(tmp_path / "output_0.npy").shape == (5, 3)
    assert np.load(tmp_path / "output_1.npy")[:, 0].tolist() == [0, 0, 1]


def test_texts_of_any_length(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, 3, AXES, fixed=False)
    recorder.record(0, 2, 2, {"y": np.array(["a", "bc"])}, 0.0)
    recorder.record(2, 1, 1, {"y": np.array(["longer"])}, 0.0)
    recorder.finish()
    assert np.load(tmp_path / "output_0.npy").tolist() == ["a", "bc", "longer"]

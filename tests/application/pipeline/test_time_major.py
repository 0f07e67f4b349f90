"""Recurrent networks whose inputs have their samples behind time steps or layers, and outputs elsewhere still."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from verdict_networks import TIME, steps, time_major

from conrepair.application.cli import main


def test_data_given_either_way_are_the_same_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    time_major(Path("open.onnx"))
    found = []
    for inside in (False, True):
        np.savez("data.npz", **steps(inside=inside))
        assert main(["execute", "open.onnx", "--data", "data.npz", "-q", "-o", f"inside-{inside}"]) == 0
        found.append([np.load(f"inside-{inside}/output_{place}.npy") for place in range(2)])
    assert [array.shape for array in found[0]] == [(20, TIME, 1, 8), (20, 1, 3)]
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)

"""Models whose outputs have as many rows as values make them have, through the verbs with no option."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import ragged_networks

import conrepair


def test_each_sample_has_its_own_rows(tmp_path: Path) -> None:
    path = ragged_networks.above_zero(tmp_path / "a.onnx")
    data = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    values = conrepair.execute(path, data=data, in_process=True).outputs["values"]
    [shift] = [onnx.numpy_helper.to_array(item) for item in onnx.load(path).graph.initializer if item.name == "shift"]
    assert len(values) == 5
    for sample, found in zip(data, values, strict=True):
        np.testing.assert_allclose(found, (sample + shift)[sample + shift > 0], rtol=1e-6)

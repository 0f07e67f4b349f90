"""Models whose outputs have as many rows as values make them have, through the verbs with no option."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import ragged_networks
from onnx_networks import drawn, written

import conrepair
from conrepair.verdicts.evaluate.verdict import Verdict

Make = Callable[..., Path]


@pytest.mark.parametrize(
    ("make", "other"),
    [
        (ragged_networks.detector, {}),
        (ragged_networks.detector, {"kernel": 1.0000003}),
        (ragged_networks.above_zero, {}),
        (ragged_networks.picked, {}),
    ],
)
def test_right_ones(make: Make, other: dict[str, Any], tmp_path: Path) -> None:
    source, target = make(tmp_path / "right.onnx"), make(tmp_path / "other.onnx", **other)
    compared = conrepair.compare(source, target, in_process=True)
    assert compared.verdict is Verdict.EQUIVALENT
    found = conrepair.localize(source, target, in_process=True)
    assert found.verdict is Verdict.EQUIVALENT
    assert not found.faults


@pytest.mark.parametrize(
    ("make", "other", "layer", "words", "reason"),
    [
        (ragged_networks.detector, {"overlap": 0.2}, "suppress", "iou_threshold", "rows against"),
        (ragged_networks.detector, {"least": 0.6}, "suppress", "score_threshold", "rows against"),
        (ragged_networks.detector, {"most": 2}, "suppress", "max_output_boxes_per_class", "rows against"),
        (ragged_networks.detector, {"center": 1}, "suppress", "center_point_box 1 in the target", "rows against"),
        (ragged_networks.detector, {"kernel": 1.2}, "features", "scaled by 1.2", "relative error"),
        (ragged_networks.detector, {"later": 1.2}, "logits", "scaled by 1.2", "relative error"),
        (ragged_networks.above_zero, {"weight": 1.3}, "y", "operand", "relative error"),
        (ragged_networks.picked, {"threshold": 0.1}, "choose", "operand", "rows against"),
        (ragged_networks.picked, {"turned": True}, "lain", "steps [-1]", "the same rows in another order"),
    ],
)
def test_wrong_ones(make: Make, other: dict[str, Any], layer: str, words: str, reason: str, tmp_path: Path) -> None:
    source, target = make(tmp_path / "right.onnx"), make(tmp_path / "other.onnx", **other)
    compared = conrepair.compare(source, target, in_process=True)
    assert compared.verdict is Verdict.FAULTY
    assert reason in compared.reason
    found = conrepair.localize(source, target, in_process=True)
    assert found.verdict is Verdict.FAULTY
    assert found.faults[0].target_layers[0] == layer
    assert words in " ".join(found.faults[0].evidence)


def test_each_sample_has_its_own_rows(tmp_path: Path) -> None:
    path = ragged_networks.above_zero(tmp_path / "a.onnx")
    data = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    values = conrepair.execute(path, data=data, in_process=True).outputs["values"]
    [shift] = [onnx.numpy_helper.to_array(item) for item in onnx.load(path).graph.initializer if item.name == "shift"]
    assert len(values) == 5
    for sample, found in zip(data, values, strict=True):
        np.testing.assert_allclose(found, (sample + shift)[sample + shift > 0], rtol=1e-6)


def test_a_repair(tmp_path: Path) -> None:
    source = ragged_networks.detector(tmp_path / "right.onnx")
    target = ragged_networks.detector(tmp_path / "other.onnx", overlap=0.2)
    found = conrepair.repair(source, target, seconds=10, in_process=True)
    assert found.exit_code == 0
    found.save(tmp_path / "repaired")
    again = conrepair.compare(source, tmp_path / "repaired" / "repaired.onnx", seed=1, in_process=True)
    assert again.verdict is Verdict.EQUIVALENT


def _boxes(path: Path, overlap: float) -> Path:
    text = """g (float[1, 16] x) => (float[1, found, 4] y) {
        flat = MatMul (x, w)
        pairs = Reshape (flat, shape)
        corner, side = Split <axis = 2> (pairs, two)
        far = Add (corner, size)
        boxes = Concat <axis = 2> (corner, far)
        scores = MatMul (x, v)
        all = Unsqueeze (scores, one)
        chosen = NonMaxSuppression (boxes, all, most, overlap, least)
        last = Gather <axis = 1> (chosen, place)
        y = Gather <axis = 1> (boxes, last)
    }"""
    weights = {
        "w": drawn(16, 240, seed=1), "v": drawn(16, 60, seed=2), "shape": np.array([1, 60, 4]),
        "two": np.array([2, 2]),
        "size": np.float32(1), "one": np.array([1]), "most": np.array([60]), "place": np.array(2),
        "overlap": np.array([overlap], np.float32), "least": np.array([-9], np.float32),
    }  # fmt: skip
    return written(path, text, weights)


def test_boxes_of_which_each_sample_has_its_own_number_behind_an_axis_of_samples(tmp_path: Path) -> None:
    source, target = _boxes(tmp_path / "a.onnx", 0.5), _boxes(tmp_path / "b.onnx", 0.4)
    found = conrepair.localize(source, target, in_process=True)
    assert found.verdict is Verdict.FAULTY
    assert "iou_threshold (overlap) of `chosen` is 0.4 in the target, 0.5 in the source" in str(found)

"""Recurrent networks whose inputs have their samples behind time steps or layers, and outputs elsewhere still."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

from conrepair.application.cli import main

GRAPH = """<ir_version: 8, opset_import: ["" : 17]>
net (float[TIME, BATCH, 4] x, float[1, BATCH, 8] h) => (float[TIME, 1, BATCH, 8] steps, float[1, BATCH, 3] y) {
  steps, last = RNN <hidden_size = 8> (x, w, r, , , h)
  y = MatMul(last, v)
}"""
TIME = 6


def network(path: str, time: str = "time", batch: str = "batch", *, wrong: bool = False) -> None:
    model = parse_model(GRAPH.replace("TIME", time).replace("BATCH", batch))
    generator = np.random.default_rng(0)
    for name, shape in {"w": (1, 8, 4), "r": (1, 8, 8), "v": (8, 3)}.items():
        values = generator.normal(0, 0.5, shape).astype(np.float32)
        values[..., 0] *= 1.2 if wrong and name == "v" else 1
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    onnx.save(model, path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    network("open.onnx")
    network("wrong.onnx", wrong=True)
    network("fixed.onnx", str(TIME), "4")
    network("lone.onnx", str(TIME), "1")
    network("wrong-fixed.onnx", str(TIME), "4", wrong=True)
    network("steps.onnx", str(TIME))
    generator = np.random.default_rng(1)
    x, h = generator.normal(size=(20, TIME, 4)), generator.normal(size=(20, 1, 8))
    x, h = x.astype(np.float32), h.astype(np.float32)
    np.savez("front.npz", x=x, h=h)
    np.savez("inside.npz", x=x.swapaxes(0, 1), h=h.swapaxes(0, 1))
    return tmp_path


@pytest.mark.parametrize("data", ["front.npz", "inside.npz"])
@pytest.mark.parametrize(
    ("source", "target", "code"),
    [("open", "open", 0), ("open", "fixed", 0), ("fixed", "open", 0), ("open", "wrong", 1), ("open", "lone", 0)],
)
def test_data_are_given_either_way(folder: Path, data: str, source: str, target: str, code: int) -> None:
    assert main(["compare", f"{source}.onnx", f"{target}.onnx", "--data", str(folder / data), "-q"]) == code


def test_both_ways_are_the_same_samples(folder: Path) -> None:
    found = []
    for data in ("front.npz", "inside.npz"):
        assert main(["execute", "open.onnx", "--data", data, "-q", "-o", f"of-{data}"]) == 0
        found.append([np.load(f"of-{data}/output_{place}.npy") for place in range(2)])
    assert [array.shape for array in found[0]] == [(20, TIME, 1, 8), (20, 1, 3)]
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("source", "target", "code"),
    [("steps", "fixed", 0), ("steps", "wrong-fixed", 1), ("fixed", "wrong", 1), ("lone", "fixed", 0)],
)
def test_drawn_inputs_need_no_option(folder: Path, source: str, target: str, code: int) -> None:
    assert main(["compare", f"{source}.onnx", f"{target}.onnx", "-q"]) == code


@pytest.mark.parametrize("target", ["wrong", "wrong-fixed"])
def test_the_fault_is_named_and_repaired(folder: Path, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repair", "open.onnx", f"{target}.onnx", "--data", "inside.npz", "-q", "-o", "out"]) == 0
    assert "1 found, 0 left" in capsys.readouterr().out
    assert main(["compare", "open.onnx", "out/repaired.onnx", "--data", "front.npz", "-q"]) == 0

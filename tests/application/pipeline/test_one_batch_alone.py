"""Targets whose inputs leave the batch open, and whose shapes hold it: found, named and repaired."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model
from verdict_networks import batched

from conrepair.application.cli import main
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.formats.models.model import Model


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    batched(Path("right.onnx"))


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join("".join(capsys.readouterr()).split())


def test_what_else_is_wrong_is_found_behind_it(capsys: pytest.CaptureFixture[str]) -> None:
    batched(Path("target.onnx"), factor=1.4, second=[4, 2, 3])
    assert main(["repair", "right.onnx", "target.onnx", "-q", "-o", "out"]) == 0
    assert "repaired: 2 faults found, 0 left" in said(capsys)
    patch, sha256 = read_patch(Path("out") / PATCH)
    patch.apply(Model("onnx", str(Path("target.onnx").absolute()), sha256), Path(), "again")
    for repaired in ("out/repaired.onnx", "again.onnx"):
        assert main(["compare", "right.onnx", repaired, "-q"]) == 0


def test_a_failure_is_told_in_words_where_no_shape_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {"right": "sizes", "wrong": "numbers"}
    for name, shape in rows.items():
        model = parse_model(
            """<ir_version: 8, opset_import: ["" : 17]>
            net (float[batch, 4] x) => (float[batch, 7] y) {
              shape = Shape(x)
              front = Slice(shape, zero, one)
              sizes = Concat <axis = 0> (front, three)
              rows = Expand(row, SIZES)
              y = Concat <axis = 1> (x, rows)
            }""".replace("SIZES", shape)
        )
        arrays = {"zero": [0], "one": [1], "three": [3], "numbers": [4, 3]}
        model.graph.initializer.extend(
            onnx.numpy_helper.from_array(np.array(numbers, np.int64), key) for key, numbers in arrays.items()
        )
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 3), np.float32), "row"))
        onnx.save(model, f"{name}.onnx")
    assert main(["compare", "right.onnx", "wrong.onnx", "-q"]) == 1
    told = said(capsys)
    assert "batches of 1, 2, 3, 16 fail: running the model failed at Concat: Non concat axis dimensions" in told

"""Repair from Python."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
from localized import WEIGHTS, Variant

from conrepair.frameworks.registry import framework
from conrepair.pipeline.repair_files import repair_files
from conrepair.runtime.files import sha256_of


def test_a_conversion_is_mended_by_a_call(tmp_path: Path) -> None:
    name = next(iter(WEIGHTS))
    right = Variant(size=(12, 12)).write(tmp_path / "right.onnx")
    wrong = Variant(size=(12, 12), weights={name: WEIGHTS[name] * 1.5}).write(tmp_path / "wrong.onnx")
    before = sha256_of(Path(wrong.path))
    result = repair_files(right.path, wrong.path, tmp_path / "out", samples=16)
    assert result is not None
    assert result.before.faults
    assert result.mended
    assert result.model is not None
    assert Path(result.model.path).parent == tmp_path / "out"
    onnxruntime.InferenceSession(result.model.path, providers=["CPUExecutionProvider"])
    assert framework("onnx").describe(result.model).inputs
    assert result.patch == str(tmp_path / "out" / "patch.json")
    assert sha256_of(Path(wrong.path)) == before
    assert repair_files(right.path, result.model.path, tmp_path / "none", samples=16) is None
    assert not (tmp_path / "none").exists()

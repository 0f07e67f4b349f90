"""`conrepair compare` ends with what to do next, as commands that can be typed."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from conrepair.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(name: str, factor: float = 1.0) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 4] x) => (float[n, 3] y) { y = MatMul (x, w) }'
    model = onnx.parser.parse_model(text)
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(factor * weight, "w"))
    onnx.save(model, name)


def compare(*arguments: str) -> int:
    return main(["compare", *arguments, "-q"])


def test_a_faulty_file_is_localized_and_repaired_next(capsys: pytest.CaptureFixture[str]) -> None:
    save("my net.onnx")
    save("other.onnx", factor=2.0)
    assert compare("my net.onnx", "other.onnx", "--seed", "3", "--low", "0") == 1
    out = capsys.readouterr().out
    told = " ".join(out.partition("next: ")[2].split())
    commands = told.split("`")[1::2]
    expected = ["my net.onnx", "other.onnx", "--seed", "3", "--low", "0", "-o"]
    assert [shlex.split(command)[:-1] for command in commands] == [
        ["conrepair", "localize", *expected],
        ["conrepair", "repair", *expected],
    ]
    for command in commands:
        assert main([*shlex.split(command)[1:], "-q"]) in {0, 1}
    assert Path("layers/localization.json").is_file()
    assert Path("repaired/repair.json").is_file()


def test_the_table_has_no_empty_columns_and_no_source_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    save("other.onnx")
    assert compare("net.onnx", "other.onnx", "--batch-size", "32") == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert "accuracy" not in head
    assert "conversion" not in head
    assert "ms" not in head.split()  # one batch: its time has the preparations in it
    assert not any("source)" in line or "/source" in line for line in lines)
    assert any(line.startswith("next: no difference beyond rounding on these inputs") for line in lines)
    assert compare("net.onnx", "other.onnx", "--batch-size", "8") == 0
    assert "ms" in capsys.readouterr().out.splitlines()[0].split()


def test_what_does_not_load_is_made_anew(capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    Path("other.tflite").write_bytes(b"1234")
    assert compare("net.onnx", "other.tflite") == 3
    told = capsys.readouterr().out.partition("next: ")[2]
    assert "`conrepair convert net.onnx --to tflite -o other-anew.tflite`" in " ".join(told.split())

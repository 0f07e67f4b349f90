"""Data that fit by their shape, transposed or under another name: the result says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from documents import document
from two_files import save_pair

import conrepair
from conrepair.application.cli import main

X = np.random.default_rng(0).normal(size=(4, 3, 9, 6)).astype(np.float32)
LAST = np.ascontiguousarray(X.transpose(0, 2, 3, 1))
BY_SHAPE = "no array of the data is called x; that input is fed y: float32[batch, 3, 9, 6], which fits by its shape"
MOVED = "float32[batch, 9, 6, 3] is transposed by [0, 3, 1, 2] for the input x"


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    save_pair(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"y": X}, [BY_SHAPE]),
        ({"x": LAST}, [MOVED]),
        ({"y": LAST}, ["no array of the data is called x", MOVED]),
        ({"x": X, "labels": np.arange(4)}, ["labels: int64[batch] feeds no input"]),
        ({"a": X, "b": X}, ["that input is fed a", "as others do", "b: float32[batch, 3, 9, 6] feeds no input"]),
        ({"x": X}, []),
    ],
    ids=["name", "layout", "name and layout", "superfluous", "guess", "right"],
)
def test_a_comparison_says_how_data_were_fitted(
    arrays: dict[str, np.ndarray], words: list[str], room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(room / "data.npz", **arrays)
    main(["compare", "source.onnx", "target.onnx", "--data", "data.npz", "-o", "out", "-q"])
    folder = room / "out" / "compare-source.onnx-target.onnx"
    notes, page = document(folder)["notes"], (folder / "report.html").read_text(encoding="utf-8")
    told = " ".join(capsys.readouterr().out.split())
    assert bool(notes) == bool(words)
    for text in words:
        assert text in told
        assert any(text in note for note in notes)
        assert text in page


@pytest.mark.parametrize(
    "words",
    [
        ["execute", "source.onnx"],
        ["localize", "source.onnx", "target.onnx"],
        ["repair", "source.onnx", "target.onnx", "-o", "out"],
        ["convert", "source.onnx", "--to", "onnx", "--via", "onnx-normalise", "-o", "out.onnx"],
    ],
    ids=lambda words: words[0],
)
def test_other_verbs_say_it_too(words: list[str], room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(room / "data.npz", y=X)
    main([*words, "--data", "data.npz", "-q"])
    assert BY_SHAPE in " ".join(capsys.readouterr().out.split())


def test_python_has_it_as_notes(room: Path) -> None:
    found = conrepair.compare("source.onnx", "target.onnx", data={"y": X}, in_process=True)
    assert any(BY_SHAPE in note for note in found.notes)
    assert conrepair.compare("source.onnx", "target.onnx", data=X, in_process=True).notes == ()
    moved = conrepair.execute("source.onnx", data=LAST, in_process=True)
    assert any(MOVED in note for note in moved.notes)

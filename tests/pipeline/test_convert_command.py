"""`conrepair convert`: what it makes is compared with its source, and what it says of it."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import small_models as small

from conrepair.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(text: str, *, opset: int, shape: str = "n, 3, 8") -> None:
    head = f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[{shape}] x) => (float[{shape}] y)'
    onnx.save(onnx.parser.parse_model(f"{head} {{ {text} }}"), "net.onnx")


def convert(*arguments: str) -> int:
    return main(["convert", *arguments, "-q"])


def test_every_step_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    save("y = Sin (x)", opset=17)
    assert convert("net.onnx", "--to", "tflite", "-o", "net.tflite") == 0
    first, *steps = capsys.readouterr().out.splitlines()
    assert first.endswith("net.tflite: onnx-keras+keras-tflite")
    assert [line.split(": ")[:2] for line in steps] == [
        ["onnx-keras", "equivalent"],
        ["onnx-keras+keras-tflite", "equivalent"],
    ]


def test_a_wrong_result_is_said_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """ONNX's version converter forgets that Hardmax joined the axes behind its axis."""
    save("y = Hardmax <axis = 1> (x)", opset=11)
    route = ["--via", "onnx-version-converter", "--option", "onnx-version-converter.opset=13"]
    command = ["net.onnx", "--to", "onnx", "-o", "new.onnx", *route]
    assert convert(*command) == 1
    assert "onnx-version-converter,opset=13: faulty: " in capsys.readouterr().out
    assert Path("new.onnx").is_file()
    assert convert(*command, "--force", "--no-check") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_notes_of_converters_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    save("n = RandomNormalLike (x) z = Sub (n, n) y = Add (x, z)", opset=17)
    assert convert("net.onnx", "--via", "onnx-normalise", "--to", "onnx", "-o", "new.onnx") == 0
    assert "note: onnx-normalise: the normalised model was not compared" in capsys.readouterr().out


def test_open_sizes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save("y = Sin (x)", opset=17, shape="n, c, l")
    command = ["net.onnx", "--to", "torch", "-o", "net.pt2"]
    assert convert(*command) == 0
    assert capsys.readouterr().out.count("not compared: ") == 1
    assert convert(*command, "--force", "--input", "n,3,5") == 0
    assert "onnx2torch: equivalent: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("y = Bernoulli (x)", 4, "of node 'y/RandomUniformLike' can't be imported"),
        ("y = Multinomial (x)", 3, "Multinomial"),
    ],
    ids=["no rule", "the source doesn't load"],
)
def test_a_failure(folder: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, words: str) -> None:
    save(text, opset=17)
    assert convert("net.onnx", "--to", "keras", "-o", "net.keras") == code
    assert words in capsys.readouterr().err
    assert not (folder / "net.keras").exists()


def test_data_and_recipe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small.onnx_convnet(folder / "net.onnx")
    assert convert("net.onnx", "--to", "torch", "-o", "net.pt2", "--data", "nowhere.npy") == 2
    assert "nowhere.npy" in capsys.readouterr().err
    assert not (folder / "net.pt2").exists()

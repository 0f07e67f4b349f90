"""`conrepair convert`: what it makes is compared with its source, and what it says of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small
from crossed import slower
from PIL import Image

from conrepair.application.cli import main
from conrepair.application.pipeline import single
from conrepair.application.report.result import AuditResult, Problem
from conrepair.formats.models.identity import model_sha256, place_model
from conrepair.ground.runtime.onnx_session import open_session
from conrepair.verdicts.evaluate.verdict import Verdict


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
    first, *steps, last = capsys.readouterr().out.splitlines()
    assert last.startswith("next: ")
    assert first.endswith("net.tflite, converted by onnx-keras and keras-tflite")
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
    (_, last) = capsys.readouterr().out.splitlines()
    assert last.startswith("next: `conrepair compare net.onnx new.onnx`")


def test_notes_of_converters_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    save("n = RandomNormalLike (x) z = Sub (n, n) y = Add (x, z)", opset=17)
    assert convert("net.onnx", "--via", "onnx-normalise", "--to", "onnx", "-o", "new.onnx") == 0
    assert "note: onnx-normalise: the normalised model was not compared" in capsys.readouterr().out


def test_open_sizes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save("y = Sin (x)", opset=17, shape="n, c, l")
    command = ["net.onnx", "--to", "torch", "-o", "net.pt2"]
    assert convert(*command) == 0
    assert "onnx2torch: equivalent: " in capsys.readouterr().out
    assert convert(*command, "--force", "--no-check") == 0
    assert "not compared: " not in capsys.readouterr().out
    assert convert("net.onnx", "--to", "torch", "-o", "NET.PT2", "--input", "n,3,5") == 0
    assert (folder / "NET.PT2").exists()
    assert "onnx2torch: equivalent: " in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["full-int8", *slower("full-uint8")])
def test_integers_that_stand_for_reals(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What TFLite says of its inputs and outputs, ONNX says behind a Transpose, and Keras can't."""
    small.tflite_of(small.keras_convnet(), folder / "net.tflite", kind)
    for target, file, steps in (("onnx", "net.onnx", 1), ("keras", "net.keras", 2)):
        assert convert("net.tflite", "--to", target, "-o", file) == 0
        out = capsys.readouterr().out
        assert "not compared" not in out
        assert out.count(": quantized: ") == steps
    assert (
        "the converted file can't hold a scale and zero point for its integers: those of the other file were used"
        in out
    )


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
    assert convert("net.onnx", "--to", "keras", "-o", "net.keras", "--no-repair") == code
    assert words in capsys.readouterr().err
    assert not (folder / "net.keras").exists()


def test_data(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small.onnx_convnet(folder / "net.onnx")
    command = ["net.onnx", "--to", "torch", "-o", "net.pt2"]
    assert convert(*command, "--data", "nowhere.npy") == 2
    assert "nowhere.npy" in capsys.readouterr().err
    assert not (folder / "net.pt2").exists()
    np.savez(folder / "images.npz", image=small.images(3))
    assert convert(*command, "--data", "images.npz") == 0
    assert "onnx2torch: equivalent: " in capsys.readouterr().out
    np.savez(folder / "others.npz", image=np.zeros((3, 7), np.float32))
    assert convert(*command, "--force", "--data", "others.npz") == 2
    assert "not compared: no array of the data fits" in capsys.readouterr().out


def test_photos_without_a_recipe_are_noted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small.onnx_convnet(folder / "net.onnx")
    (folder / "photos").mkdir()
    Image.new("RGB", (30, 30), "white").save(folder / "photos" / "one.png")
    command = ["net.onnx", "--to", "torch", "-o", "net.pt2", "--data", "photos"]
    assert convert(*command) == 0
    assert "raw pixels 0..255" in capsys.readouterr().out
    assert convert(*command, "--force", "--recipe", "torchvision") == 0
    assert "raw pixels" not in capsys.readouterr().out


def rescaling(pixels: float) -> None:
    """A network whose first layers make numbers from -1 to 1 of what it's made for."""
    one = f"float one = {{1.0}}, float half = {{{pixels / 2}}}"
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 3, 8, 8] x) => (float[n, 4, 8, 8] y)'
    body = f"<{one}> {{ divided = Div (x, half) small = Sub (divided, one) y = Conv (small, weights) }}"
    model = onnx.parser.parse_model(f"{head} {body}")
    weights = np.random.default_rng(0).normal(size=(4, 3, 1, 1)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    onnx.save(model, "net.onnx")


def test_raw_pixels_are_right_for_a_network_that_rescales_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "photos").mkdir()
    generator = np.random.default_rng(0)
    for place in range(4):
        pixels = generator.integers(0, 255, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{place}.png")
    command = ["net.onnx", "--to", "onnx", "--via", "onnx-quantize-static", "-o", "new.onnx", "--data", "photos"]
    rescaling(1.0)
    assert convert(*command) == 2
    told = capsys.readouterr().err
    assert "onnx-quantize-static calibrates with photos, whose preprocessing decides the ranges, and net.onnx" in told
    assert not (folder / "new.onnx").exists()
    rescaling(255.0)
    assert convert(*command) == 0
    told = capsys.readouterr().out
    assert "net.onnx: photos go in as raw pixels (no --recipe is given), which it's made for: 0 to 255 (" in told
    assert "accuracy means little" not in told


def test_what_makes_equal_answers_worthless_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    save("a = Abs (x) b = Neg (a) y = Log (b)", opset=17)
    assert convert("net.onnx", "--to", "torch", "-o", "net.pt2") == 1
    out = capsys.readouterr().out
    assert "onnx2torch: undecided: " in out
    assert "values are NaN or infinite in both models" in out


def test_a_result_that_does_not_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run = single.run_models

    def stopped(*arguments: Any, **options: Any) -> AuditResult:
        done = run(*arguments, **options)
        changes = {"verdict": Verdict.UNDEPLOYABLE, "problem": Problem(message="it stopped", exit_code=4)}
        rows = [dataclasses.replace(row, **(changes if row.kind == "target" else {})) for row in done.rows]
        return dataclasses.replace(done, rows=tuple(rows))

    monkeypatch.setattr(single, "run_models", stopped)
    save("y = Sin (x)", opset=17)
    assert convert("net.onnx", "--to", "torch", "-o", "net.pt2") == 4
    assert "onnx2torch: undeployable: it stopped" in capsys.readouterr().out


def test_a_tool_that_fails_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """onnx2torch doesn't know such a Flatten, and says nothing but "IndexError"."""
    save("f = Flatten <axis = 0> (x) s = Shape (x) y = Reshape (f, s)", opset=17)
    assert convert("net.onnx", "--to", "torch", "-o", "net.pt2", "--no-repair") == 4
    assert "onnx2torch: IndexError: " in capsys.readouterr().err


def _external(folder: Path, location: str, scale: float = 1.0) -> Path:
    """A model whose weights lie beside it."""
    proto = onnx.load(small.onnx_convnet(folder / "model.onnx"))
    for tensor in proto.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array * array.dtype.type(scale), tensor.name))
    onnx.save(proto, folder / "model.onnx", save_as_external_data=True, location=location, size_threshold=0)
    return folder / "model.onnx"


def test_weights_get_the_name_of_the_model_that_they_are_of(folder: Path) -> None:
    """External data have the same name in every folder that a converter writes to."""
    (folder / "made").mkdir()
    made, source = _external(folder / "made", "model.onnx.data", 3.0), _external(folder, "model.onnx.data")
    before = model_sha256(source)
    place_model(made, source.with_name("new.onnx"))
    assert model_sha256(source) == before
    assert {path.name for path in folder.glob("*.data")} == {"model.onnx.data", "new.onnx.data"}
    feeds = {"image": small.images(2)}
    one, two = (open_session(path).run(None, feeds)[0] for path in (made, source.with_name("new.onnx")))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_nobody_s_weights_are_replaced(folder: Path, force: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It's said before anything is converted, also where they are the source's."""
    source = _external(folder, "new.onnx.data")
    before = model_sha256(source)
    assert convert("model.onnx", "--via", "onnx-normalise", "--to", "onnx", "-o", "new.onnx", *force) == 2
    assert "new.onnx.data exists, where the weights of new.onnx would go" in capsys.readouterr().err
    assert model_sha256(source) == before
    assert not (folder / "new.onnx").exists()


def test_a_file_that_it_did_not_write_is_not_replaced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save("y = Sin (x)", opset=17)
    command = ["net.onnx", "--via", "onnx-normalise", "--to", "onnx", "-o", "new.onnx"]
    (folder / "new.onnx").write_text("precious")
    assert convert(*command, "--force") == 2
    assert "new.onnx exists and no conversion of this version wrote it" in capsys.readouterr().err
    assert (folder / "new.onnx").read_text() == "precious"
    (folder / "new.onnx").unlink()
    assert convert(*command) == 0
    assert convert(*command, "--force") == 0
    (folder / "new.onnx").write_text("edited")
    assert convert(*command, "--force") == 2
    assert "new.onnx isn't as conrepair wrote it" in capsys.readouterr().err
    assert (folder / "new.onnx").read_text() == "edited"


def test_what_is_put_into_a_saved_model_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save("y = Sin (x)", opset=17)
    command = ["net.onnx", "--to", "tensorflow", "-o", "saved", "--no-check"]
    assert convert(*command) == 0
    (folder / "saved" / "variables" / "notes.txt").write_text("mine")
    capsys.readouterr()
    assert convert(*command, "--force") == 2
    assert "saved/variables/notes.txt was written by no conversion, so" in capsys.readouterr().err
    assert (folder / "saved" / "variables" / "notes.txt").read_text() == "mine"


def test_an_unknown_format_is_said_before_the_output_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    save("y = Sin (x)", opset=17)
    assert convert("net.onnx", "--to", "tfite", "-o", "net.tflite") == 2
    assert "unknown format 'tfite'; did you mean 'tflite'?" in capsys.readouterr().err

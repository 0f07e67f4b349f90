"""Words on a command line that can't be meant: an exit code, a sentence, no traceback."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from conrepair import api
from conrepair.application.cli import main
from conrepair.formats.models.identity import model_sha256
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.processes.workers import ENDED, Failure, Job, Workers


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 4] x) => (float[n, 3] y) { y = MatMul (x, w) }'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(np.ones((4, 3), np.float32), "w"))
    onnx.save(model, "net.onnx")
    (tmp_path / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    return tmp_path


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    try:
        code = main(words)
    except SystemExit as end:
        code = int(end.code or 0)
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert "fault of conrepair" not in shown.err
    return code, shown.err + shown.out


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["inspect", "a\0.onnx"], 2, "MODEL: a\\x00.onnx is no path: it holds a null character"),
        (["inspect", "x" * 300], 2, "has 300 bytes, and 255 are the most"),
        (["inspect", os.fsdecode(b"\xff.onnx")], 2, "isn't UTF-8"),
        (["compare", "net.onnx", "y" * 5000], 2, "has 5000 bytes"),
        (["compare", "net.onnx", "net.onnx", "--data", "a\0b"], 2, "--data: a\\x00b is no path"),
        (["compare", "net.onnx", "net.onnx", "--data", "x" * 300 + ".npz"], 2, "--data"),
        (["compare", "net.onnx", "net.onnx", "--recipe", "deep.json"], 2, "nested more than 200 deep"),
        (["compare", "net.onnx", "net.onnx", "-o", "x" * 250], 2, "200 are the most"),
        (["repair", "net.onnx", "--apply", "deep.json", "-o", "out"], 2, "nested more than 200 deep"),
        (["config", "check", "deep.json"], 2, "nested more than 200 deep"),
        (["config", "check", "\0"], 2, "is no path"),
        (["run", "z" * 300], 2, "255 are the most"),
        (["localize", "net.onnx", "a\0b", "net.onnx"], 2, "is no path"),
        (["convert", "net.onnx", "--to", "tflite", "-o", "out\0"], 2, "is no path"),
    ],
)  # fmt: skip
def test_it_ends_in_a_sentence(
    room: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, sentence: str
) -> None:
    given, text = said(words, capsys)
    assert (given, sentence in text) == (code, True), text
    assert len(text) < 2000


@pytest.mark.parametrize("size", ["9" * 5000, "1" * 13, "-" + "1" * 5000])
def test_a_size_of_thousands_of_digits_is_refused(room: Path, capsys: pytest.CaptureFixture[str], size: str) -> None:
    code, text = said(["inspect", "net.onnx", "--input", f"1,{size}"], capsys)
    assert (code, "digits" in text) == (2, True)
    assert len(text) < 500


@pytest.mark.parametrize("size", ["²", "٣", "1_0", "--1"])
def test_what_is_no_number_names_a_size(room: Path, capsys: pytest.CaptureFixture[str], size: str) -> None:
    assert said(["inspect", "net.onnx", "--input", f"x={size},4"], capsys)[0] == 0


def test_a_long_name_of_a_model_fails_nothing(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "n" * 250 + ".onnx"
    shutil.copy("net.onnx", name)
    (room / "b").mkdir()
    shutil.copy("net.onnx", f"b/{name}")
    code, text = said(["compare", name, f"b/{name}", "-o", "out"], capsys)
    assert (code, text.count("conrepair:")) == (0, 0)
    (file,) = (room / "out").glob("compare-*/result.json")
    first = json.loads(file.read_text())["rows"][0]
    assert first["model"].startswith("nnn")
    assert (file.parent / "models" / first["model"] / "source" / "provenance.json").is_file()


def test_names_that_are_not_utf_8_are_reported(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    text = (
        '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 3, 8, 8] x) => (float[n, 3, 8, 8] y) { y = Relu (x) }'
    )
    onnx.save(onnx.parser.parse_model(text), "image.onnx")
    (room / "photos").mkdir()
    for raw in (b"caf\xe9.png", b"\xff\xfe.png"):
        Image.new("RGB", (8, 8)).save(room / "photos" / os.fsdecode(raw), "PNG")
    words = ["compare", "image.onnx", "image.onnx", "--data", "photos", "-o", "out"]
    assert said(words, capsys)[0] == 0
    (text,) = [file.read_text() for file in (room / "out").glob("compare-*/result.json")]
    assert r"caf\\xe9.png" in text


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (
            ["--samples", "1000000000000"],
            "1,000,000,000,000 isn't from 1 to 1,000,000: each runs through",
        ),
        (["--samples", "1e12"], "1e12 isn't a whole number from 1 to 1,000,000"),
        (["--samples", "²"], "² isn't a whole number"),
        (["--samples", "0"], "0 isn't from 1"),
        (["--samples", "9" * 5000], "isn't a whole number"),
        (["--seed", "-1"], "-1 isn't from 0"),
        (["--batch-size", "0"], "0 isn't from 1"),
        (["--timeout", "nan"], "nan isn't a finite number"),
        (["--timeout", "1e300"], "isn't from 0 to 1e+07 seconds"),
        (["--low", "inf"], "inf isn't a finite number"),
        (["--rtol", "x" * 5000], "isn't a finite number"),
    ],
)
def test_numbers_that_can_t_be_meant(
    room: Path, capsys: pytest.CaptureFixture[str], option: list[str], sentence: str
) -> None:
    code, text = said(["compare", "net.onnx", "net.onnx", *option], capsys)
    assert (code, f"argument {option[0]}" in text, sentence in text) == (2, True, True), text
    assert len(text) < 500


def test_as_many_samples_are_refused_in_python(room: Path) -> None:
    with pytest.raises(UsageError, match=r"samples is .*: give at most 1,000,000"):
        api.compare("net.onnx", "net.onnx", samples=10**12)


@pytest.mark.parametrize(("words", "count"), [([], 6), (["--samples", "4"], 4), (["--samples", "100"], 6)])
@pytest.mark.parametrize("verb", ["compare", "localize", "execute"])
def test_samples_are_so_many_of_the_data_too(
    room: Path, capsys: pytest.CaptureFixture[str], verb: str, words: list[str], count: int
) -> None:
    np.save("data.npy", np.zeros((6, 4), np.float32))
    models = ["net.onnx"] if verb == "execute" else ["net.onnx", "net.onnx"]
    assert main([verb, *models, "--data", "data.npy", "-o", "out", *words]) == 0
    shown = next(iter((room / "out").glob("**/result.json")))
    told = "(6)" if count == 6 else f"(the first {count} of 6)"
    assert told in json.dumps(list(json.loads(shown.read_text())["datasets"].values()))


@pytest.mark.parametrize(
    ("verb", "kind"), [*itertools.product(("inspect", "compare"), sorted(ENDED)), ("inspect", "exception")]
)
def test_what_dies_while_it_is_loaded_can_t_be_loaded(
    room: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str, kind: str
) -> None:
    whole = Workers.outcome

    def outcome(self: Workers, lane: Any, job: Job, future: Any) -> Any:
        real = whole(self, lane, job, future)
        died = job.function == "describe" or (job.function == "look" and kind in ENDED)
        return Failure(kind, "SIGSEGV", "the worker process died (SIGSEGV)") if died else real

    monkeypatch.setattr(Workers, "outcome", outcome)
    Path("net.tflite").write_bytes(b"TFL3" * 10)
    code, text = said(
        ["inspect", "net.tflite"] if verb == "inspect" else ["compare", "net.tflite", "net.onnx"], capsys
    )
    assert (code, "SIGSEGV" in text) == (3, True), text


def test_a_patch_that_names_what_isn_t_there(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit = {"edit": "Remove", "node": "gone", "input": 0}
    patch = {"version": 1, "target_sha256": model_sha256(room / "net.onnx"), "arrays": None, "edits": [edit]}
    (room / "patch.json").write_text(json.dumps(patch))
    code, text = said(["repair", "net.onnx", "--apply", "patch.json", "-o", "out"], capsys)
    assert (code, "patch.json can't be applied to" in text, "no node gone" in text) == (2, True, True), text
    assert not (room / "out").exists()


def test_a_recipe_of_pictures_larger_than_memory(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "recipe.json").write_text(json.dumps({"base": "raw", "size": [2**31, 2**31]}))
    (room / "photo.png").touch()
    code, text = said(["execute", "net.onnx", "--data", ".", "--recipe", "recipe.json"], capsys)
    assert (code, "less than or equal to 16384" in text) == (2, True), text

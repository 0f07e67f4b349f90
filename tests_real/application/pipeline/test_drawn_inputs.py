"""Inputs that nobody gave: those that the files are made for, or others that tell something."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_networks import drawn, written
from rescaled import as_int8, pictures, trained

from conrepair.application.cli import main

LOGARITHM = "small (float[batch, 8] x) => (float[batch, 3] y) { [log] l = Log (x) [mm] y = MatMul (l, w) }"
FLAT = "small (float[batch, 8] x) => (float[batch, 3] y) { [mm] m = MatMul (x, w) [add] y = Add (m, c) }"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "cnn.keras"
    trained().save(path)
    return path


@pytest.mark.parametrize("stored", [False, True])
def test_a_right_int8_model_is_right_without_data(
    stored: bool, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    target = as_int8(tmp_path / "right.tflite", pictures(100)[0], stored=stored)
    monkeypatch.chdir(tmp_path)
    assert main(["compare", str(source), str(target), "-o", "out"]) == 0
    printed = capfd.readouterr().out
    assert "0 to 255 (Rescaling)" in printed
    differing = float(printed.split("within the limit: ")[1].split("%")[0])
    assert differing <= 10, "answers of inputs that are as good as equal differed all at once, or not at all"


def test_a_calibration_on_too_small_values_is_found_without_data(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    target = as_int8(tmp_path / "wrong.tflite", pictures(100)[0] / 255, stored=True)
    monkeypatch.chdir(tmp_path)
    assert main(["compare", str(source), str(target), "-o", "out"]) == 1
    text = " ".join(capfd.readouterr().out.split())
    assert "is made for 0 to 1 (how it's quantized), that of the original for 0 to 255 (Rescaling)" in text


@pytest.mark.parametrize(("verb", "code"), [("compare", 1), ("localize", 1), ("repair", 0)])
def test_a_logarithm_gets_inputs_that_it_takes(
    verb: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    weights = drawn(8, 3, seed=1)
    paths = [written(tmp_path / f"{name}.onnx", LOGARITHM, {"w": weights * name}) for name in (1, 2)]
    monkeypatch.chdir(tmp_path)
    assert main([verb, *map(str, paths), "-o", "out"]) == code
    told = capfd.readouterr().err
    assert "outputs are mostly NaN or infinite" in told
    assert "drawn from 0.05 to 1" in told


@pytest.mark.parametrize(
    ("offset", "found"), [(1e3, "drawn from 0 to 255"), (1e9, "from 0 to 255: try your own data (--data)")]
)
def test_outputs_that_hardly_depend_on_inputs_are_said(
    offset: float, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    weights = {"w": drawn(8, 3, seed=1), "c": np.full(3, offset, np.float32)}
    path = written(tmp_path / "m.onnx", FLAT, weights)
    monkeypatch.chdir(tmp_path)
    assert main(["compare", str(path), str(path), "-o", "out"]) == 0
    told = " ".join(capfd.readouterr().err.split())
    assert "samples give nearly the same output" in told
    assert found in told
    assert "--data" in told
    assert "--low, --high" in told


def test_pictures_are_tried_where_noise_is_averaged_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Means of noise are as good as equal, so that a colour taken for another isn't seen."""
    text = """small (float[batch, 3, 96, 96] x) => (float[batch, 4] y) {
        [mean] m = ReduceMean <axes = [2, 3], keepdims = 0> (x)
        [mm] p = MatMul (m, w)
        [add] y = Add (p, c)
    }"""
    weights = {"w": drawn(3, 4, seed=1), "c": np.full(4, 3, np.float32)}
    paths = [
        written(tmp_path / f"{name}.onnx", text, weights | {"w": weight}, opset=17)
        for name, weight in (("right", weights["w"]), ("bgr", weights["w"][::-1].copy()))
    ]
    monkeypatch.chdir(tmp_path)
    assert main(["compare", *map(str, paths), "-o", "out"]) == 1
    told = capfd.readouterr()
    assert "so inputs are drawn as pictures that vary slowly" in " ".join(told.err.split())
    assert "pictures that vary slowly, -1 to 1" in told.out


@pytest.mark.parametrize("asked", [["--low", "-2"], ["--high", "3"]])
def test_inputs_that_somebody_wants_are_these(
    asked: list[str], source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["compare", str(source), str(source), *asked, "-o", "out"]) == 0
    text = " ".join(capfd.readouterr().out.split())
    assert f"uniform in [{'-2, 1' if asked[0] == '--low' else '-1, 3'}]" in text
    assert "samples give nearly the same output" in text

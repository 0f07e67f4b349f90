"""The phone's way: labelled photos, a quantized TFLite file, and outputs that a device saved as integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import pytest
from ai_edge_litert.interpreter import Interpreter
from PIL import Image

from conrepair.application.cli import main

CLASSES = ("square", "cross", "ring", "bar")  # in the model's order
PHOTOS, SIZE = 24, 12
INT8 = ["--option", "keras-tflite.quantize=int8", "--option", "keras-tflite.int8_io=true"]


def photo(place: int) -> npt.NDArray[np.uint8]:
    pixels = np.random.default_rng(place).integers(0, 90, (SIZE, SIZE, 3), dtype=np.uint8)
    pixels[3 * (place % 4) : 3 * (place % 4) + 3] = 255
    return pixels


def network() -> keras.Model:
    """Tells which part of a photo is bright, and rescales pixels itself."""
    image = keras.Input((SIZE, SIZE, 3), name="image")
    x = keras.layers.Rescaling(1 / 127.5, offset=-1)(image)
    x = keras.layers.Dense(len(CLASSES), use_bias=False, name="parts")(keras.layers.Flatten()(x))
    model = keras.Model(image, keras.layers.Softmax(name="scores")(x))
    parts = np.repeat(np.eye(len(CLASSES), dtype=np.float32), SIZE * SIZE * 3 // len(CLASSES), axis=0)
    model.get_layer("parts").set_weights([0.02 * parts + np.random.default_rng(0).normal(0, 2e-3, parts.shape)])
    return model


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for place in range(PHOTOS):
        name = f"{CLASSES[place % 4]}_{place // 4:03}.png"
        Image.fromarray(photo(place)).save(tmp_path / "photos" / name)
    (tmp_path / "labels.txt").write_text("\n".join(CLASSES))
    network().save(tmp_path / "net.keras")
    return tmp_path


def on_the_phone(model: str, inputs: str, *, integers: bool) -> None:
    """Run a file there, sample by sample, as the page says."""
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    (taken,), (output,) = interpreter.get_input_details(), interpreter.get_output_details()
    found: list[npt.NDArray[Any]] = []
    with np.load(inputs) as arrays:
        (samples,) = arrays.values()
        assert samples.dtype == taken["dtype"]
        for sample in samples:
            interpreter.set_tensor(taken["index"], sample[None])
            interpreter.invoke()
            found.append(interpreter.get_tensor(output["index"])[0])
    values, (scale, zero_point) = np.stack(found), output["quantization"]
    np.savez("outputs.npz", scores=values if integers else (values.astype("float32") - zero_point) * scale)


@pytest.mark.parametrize("integers", [True, False])
def test_from_photos_to_outputs_of_a_phone(room: Path, integers: bool, capsys: pytest.CaptureFixture[str]) -> None:
    made = ["convert", "net.keras", "--to", "tflite", *INT8, "--data", "photos", "-o", "net.tflite", "-q"]
    assert main(made) == 0
    told = capsys.readouterr().out
    assert "as raw pixels (no --recipe is given), which it's made for: 0 to 255 (Rescaling)" in told
    assert main(["compare", "net.keras", "net.tflite", "--data", "photos", "-q"]) == 0
    told = capsys.readouterr().out
    assert "classes: 0 = square, 1 = cross, 2 = ring, 3 = bar, as " in told
    assert f"{PHOTOS}/{PHOTOS}" in told
    assert main(["inspect", "net.tflite", "-q"]) == 0
    assert "zero point -128: holds 0 to 255" in capsys.readouterr().out
    assert main(["inputs", "net.keras", "--data", "photos", "-o", "inputs.npz", "-q"]) == 0
    assert main(["inputs", "net.tflite", "--data", "inputs.npz", "-o", "phone.npz", "-q"]) == 0
    assert "int8, as the model takes it, quantized by scale 1 and zero point -128" in capsys.readouterr().out
    on_the_phone("net.tflite", "phone.npz", integers=integers)
    assert main(["compare", "net.tflite", "outputs.npz", "--data", "phone.npz", "-q"]) == 0
    capsys.readouterr()
    code = main(["compare", "net.keras", "outputs.npz", "--data", "inputs.npz", "-q"])
    told = capsys.readouterr().out
    if integers:
        assert code == 0
        assert told.startswith("quantized. ")
        assert "the integers (int8) of scores are taken for quantized numbers of scale 1/256 and zero" in told
    else:
        assert "integers" not in told

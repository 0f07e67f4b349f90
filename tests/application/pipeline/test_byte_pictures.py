"""One of two models takes bytes and prepares them itself; the other takes what others prepared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import localized
import numpy as np
import onnxruntime
import pytest
from localized import WEIGHTS, Variant

import conrepair
from conrepair.ground.data.pictures.named_recipes import RECIPES
from conrepair.ground.data.pictures.recipe import apply_numeric

BYTES = np.random.default_rng(0).integers(0, 256, (6, 12, 12, 3), np.uint8)
NODES = {
    "torchvision": "s = Div (t, k) m = Sub (s, mean) begin = Div (m, std)",
    "keras:tf": "s = Div (t, half) begin = Sub (s, one)",
    "raw": "begin = Identity (t)",
}
NUMBERS = {
    "k": np.float32(255),
    "half": np.float32(127.5),
    "one": np.float32(1),
    "mean": np.array(RECIPES["torchvision"].mean, np.float32).reshape(1, 3, 1, 1),
    "std": np.array(RECIPES["torchvision"].std, np.float32).reshape(1, 3, 1, 1),
}


def _plain(folder: Path) -> Path:
    return Path(Variant(size=(12, 12)).write(folder / "plain.onnx").path)


def _of_bytes(folder: Path, recipe: str, wrong: str = "") -> Path:
    """The same with its preparation inside, from bytes with the channels last."""
    weights = {name: value for name, value in NUMBERS.items() if f" {name})" in NODES[recipe]}
    weights |= {wrong: WEIGHTS[wrong] * np.float32(1.3)} if wrong else {}
    before = f"f = Cast <to = 1> (image) t = Transpose <perm = [0, 3, 1, 2]> (f) {NODES[recipe]}".replace(
        "f ", "g ", 1
    )
    variant = Variant(before=before.replace("(f)", "(g)"), begin="begin", weights=weights, size=(12, 12))
    text = "float[batch, 3, {height}, {width}] image"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(localized, "_TEXT", localized._TEXT.replace(text, "uint8[batch, {height}, {width}, 3] image"))
        return Path(variant.write(folder / "bytes.onnx").path)


@pytest.mark.parametrize("recipe", list(NODES))
@pytest.mark.parametrize("swapped", [False, True])
def test_a_right_one_is_equivalent_and_its_preparation_is_said(recipe: str, swapped: bool, tmp_path: Path) -> None:
    pair = _plain(tmp_path), _of_bytes(tmp_path, recipe)
    found = conrepair.compare(*(reversed(pair) if swapped else pair), in_process=True)
    assert found.verdict == "equivalent"
    assert any("bytes.onnx takes bytes" in note and f"`{recipe}`" in note for note in found.notes), found.notes
    localized = conrepair.localize(*(reversed(pair) if swapped else pair), in_process=True)
    assert (localized.verdict, localized.faults) == ("equivalent", ())


def test_a_wrong_one_is_localized_and_repaired(tmp_path: Path) -> None:
    plain, wrong = _plain(tmp_path), _of_bytes(tmp_path, "torchvision", "inner")
    assert conrepair.compare(plain, wrong, in_process=True).verdict == "faulty"
    found = conrepair.localize(plain, wrong, in_process=True)
    assert [fault.target_layers for fault in found.faults] == [("c",)]
    done = conrepair.repair(plain, wrong, output=tmp_path / "out", advice=0, in_process=True)
    assert done.mended
    assert conrepair.compare(plain, done.model, in_process=True).verdict == "equivalent"


@pytest.mark.parametrize("given", ["bytes", "numbers", "noise"])
def test_data_of_either_model_feed_both(given: str, tmp_path: Path) -> None:
    recipe = RECIPES["torchvision"]
    data: dict[str, Any] = {
        "bytes": BYTES,
        "numbers": apply_numeric(recipe, BYTES, "NCHW"),
        "noise": np.random.default_rng(0).normal(size=(6, 3, 12, 12)).astype(np.float32),
    }
    pair = _plain(tmp_path), _of_bytes(tmp_path, "torchvision")
    if given == "noise":
        with pytest.raises(conrepair.ConrepairError, match="no array of the data fits"):
            conrepair.compare(*pair, data=data[given], in_process=True)
        return
    found = conrepair.compare(*pair, data=data[given], in_process=True)
    assert found.verdict == "equivalent"


def test_by_the_files_alone_its_preparation_is_a_layer_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = _plain(tmp_path), _of_bytes(tmp_path, "torchvision")
    monkeypatch.setattr(onnxruntime.InferenceSession, "run", None)  # it's not run
    found = conrepair.compare(*pair, static=True, in_process=True)
    assert (found.verdict, found.notes) == ("undecided", ())
    assert found.faults[0].words == (
        "Div `s` is in the target, and not in the source: the input is prepared in another way"
    )

"""One of two models takes bytes and prepares them itself; the other takes what others prepared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from byte_networks import prepared

import conrepair
from conrepair.ground.data.pictures.named_recipes import RECIPES
from conrepair.ground.data.pictures.recipe import apply_numeric

BYTES = np.random.default_rng(0).integers(0, 256, (6, 12, 12, 3), np.uint8)


@pytest.mark.parametrize("given", ["bytes", "numbers", "noise"])
def test_data_of_either_model_feed_both(given: str, tmp_path: Path) -> None:
    recipe = RECIPES["torchvision"]
    data: dict[str, Any] = {
        "bytes": BYTES,
        "numbers": apply_numeric(recipe, BYTES, "NCHW"),
        "noise": np.random.default_rng(0).normal(size=(6, 3, 12, 12)).astype(np.float32),
    }
    pair = prepared(tmp_path / "plain.onnx"), prepared(tmp_path / "bytes.onnx", recipe="torchvision")
    if given == "noise":
        with pytest.raises(conrepair.ConrepairError, match="no array of the data fits"):
            conrepair.compare(*pair, data=data[given], in_process=True)
        return
    found = conrepair.compare(*pair, data=data[given], in_process=True)
    assert found.verdict == "equivalent"


def test_by_the_files_alone_its_preparation_is_a_layer_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = prepared(tmp_path / "plain.onnx"), prepared(tmp_path / "bytes.onnx", recipe="torchvision")
    monkeypatch.setattr(onnxruntime.InferenceSession, "run", None)  # it's not run
    found = conrepair.compare(*pair, static=True, in_process=True)
    assert (found.verdict, found.notes) == ("undecided", ())
    assert found.faults[0].words == (
        "Div `s` is only in the converted model: the input is preprocessed in another way"
    )

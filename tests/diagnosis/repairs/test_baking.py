"""Operators in front of an input do what another recipe would, in every format; what they can't do is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from localized import Variant

from conrepair.diagnosis.repairs.baking import recipe_operations
from conrepair.diagnosis.repairs.edits import Graft
from conrepair.diagnosis.repairs.patch import Patch
from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.pictures.recipe import Recipe, apply_numeric
from conrepair.ground.graph.layer_graph import Array
from tests.support.native_models import keras_file, tensorflow_file, tflite_file, torch_file

_RAW = Recipe("raw", size=(12, 12))
_TORCH = Recipe("torch", size=(12, 12), divisor=255.0, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
_CAFFE = Recipe("caffe", size=(12, 12), channels="bgr", mean=(103.939, 116.779, 123.68))
_TF = Recipe("tf", size=(12, 12), divisor=127.5, mean=(1.0,))
_PIXELS = np.random.default_rng(0).integers(0, 256, (2, 12, 12, 3)).astype(np.uint8)
_FILES = {"keras": keras_file, "tflite": tflite_file, "torch": torch_file, "tensorflow": tensorflow_file}


def _onnx(name: str, folder: Path) -> Model:
    folder.mkdir(exist_ok=True)
    return Variant(size=(12, 12)).write(folder / f"{name}.onnx")


def answers(model: Model, array: Array) -> list[Array]:
    runnable = framework(model.framework).load(model)
    return list(runnable.run({runnable.inputs[0].name: array}).values())


@pytest.mark.parametrize(
    ("fed", "wanted"), [(_RAW, _TORCH), (_TORCH, _CAFFE), (_CAFFE, _TF), (_TF, _TORCH), (_CAFFE, _TORCH)]
)
def test_a_model_prepares_its_photos_itself(tmp_path: Path, fed: Recipe, wanted: Recipe) -> None:
    model = _onnx("net", tmp_path)
    tensor = open_editor(model).graph.inputs[0]
    operations = recipe_operations(fed, wanted, tensor, channels_first=True)
    changed = Patch((Graft(tensor, operations),)).apply(model, tmp_path, "baked")
    right = answers(model, apply_numeric(wanted, _PIXELS, "NCHW"))
    for one, two in zip(right, answers(changed, apply_numeric(fed, _PIXELS, "NCHW")), strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-3, atol=1e-4 * float(np.abs(one).max()))


@pytest.mark.parametrize("kind", _FILES)
def test_every_format_has_the_operators(tmp_path: Path, kind: str) -> None:
    model = _FILES[kind]("image", tmp_path)
    first = kind == "torch"
    tensor = open_editor(model).graph.inputs[0]
    operations = recipe_operations(_CAFFE, _TORCH, tensor, channels_first=first)
    assert [item.operator for item in operations] == ["Gather", "Mul", "Add"]
    (tmp_path / "out").mkdir()
    changed = Patch((Graft(tensor, operations),)).apply(model, tmp_path / "out", "baked")
    layout = "NCHW" if first else "NHWC"
    right = answers(model, apply_numeric(_TORCH, _PIXELS, layout))
    for one, two in zip(right, answers(changed, apply_numeric(_CAFFE, _PIXELS, layout)), strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-3, atol=1e-4 * float(np.abs(one).max()))


@pytest.mark.parametrize(
    ("fed", "wanted", "words"),
    [
        (_RAW, Recipe("other", size=(12, 12), fit="crop"), "cropped or resized in another way"),
        (_RAW, Recipe("other", size=(12, 12), resampler="tensorflow"), "cropped or resized in another way"),
        (_RAW, Recipe("other", size=(12, 12), channels="grey"), "grey can't be made of rgb"),
        (
            Recipe("one", size=(12, 12), layout="NCHW"),
            Recipe("other", size=(12, 12), layout="NHWC"),
            "part of its shape",
        ),
        (_RAW, _RAW, "do the same"),
    ],
)
def test_what_operators_cannot_say_is_refused(fed: Recipe, wanted: Recipe, words: str) -> None:
    with pytest.raises(NotEditableError, match=words):
        recipe_operations(fed, wanted, "image", channels_first=True)

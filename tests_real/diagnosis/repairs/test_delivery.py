"""What can't be repaired in the target's own format is delivered as ONNX, with the reason."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from registries import put

from benchmarks.faults.catalogue import faults
from benchmarks.faults.inject_file import inject_file
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.outcomes import CONVERTED, PATCH
from conrepair.diagnosis.repairs.patch import patch_files, read_patch
from conrepair.diagnosis.repairs.repair import apply_patch, as_onnx, repair_models
from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.editing.operation import NotEditableError
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.tflite.edit.editor import TfliteEditor
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConversionError, ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of
from tests.support.native_models import PICTURES, feeds_of, tflite_file, torch_file, torch_image
from tests.support.small_models import model_of

_SAMPLES = 12
_OPTIONS = RepairOptions(Options(samples=4, batch_size=4), seconds=60, unseen=8)


def subject(model: Model, folder: Path, *, channels_last: bool) -> FedModel:
    path = folder / "data.npz"
    if not path.exists():
        picture = feeds_of("image", channels_last=channels_last)["image"]
        drawn = np.random.default_rng(3).normal(size=(_SAMPLES, *picture.shape[1:]))
        np.savez(path, image=drawn.astype(np.float32))
    inputs = model.inputs or framework(model.framework).describe(model).inputs
    return FedModel(model, inputs, DataReference("tensors", _SAMPLES, str(path), sha256_of(path)), None)


def traced(folder: Path, factor: float) -> Model:
    """TorchScript of the pictures' network, the weights of one layer scaled."""
    network = torch_image()
    with torch.no_grad():
        network.square.weight.mul_(factor)
    path = folder / "traced.pt"
    torch.jit.trace(network, torch.from_numpy(feeds_of("image")["image"])).save(str(path))
    return model_of("torch", path, inputs=(TensorSpec("image", PICTURES, "float32"),))


def refuse(*_: object) -> None:
    raise NotEditableError("this place can't be changed")


def test_torch_script_is_delivered_as_onnx(tmp_path: Path) -> None:
    sides = torch_file("image", tmp_path), traced(tmp_path, 1.5)
    before = sha256_of(Path(sides[1].path))
    both = [subject(model, tmp_path, channels_last=False) for model in sides]
    result = repair_models(*both, tmp_path / "out", _OPTIONS)
    assert sha256_of(Path(sides[1].path)) == before
    assert result.mended
    assert result.delivery is not None
    assert "neither an exported program" in result.delivery.reason
    assert result.delivery.error < 1e-5
    assert result.model is not None
    assert result.model.framework == "onnx"
    assert result.unseen_before.error > 1e-2
    assert result.unseen_after.error < 1e-4
    assert len(result.edits) == 1
    came = tmp_path / "out" / CONVERTED  # what the patch is for
    again = apply_patch(*read_patch(tmp_path / "out" / PATCH), model_of("onnx", came), tmp_path / "again")
    assert again is not None
    assert again.sha256 == result.model.sha256
    assert [file.name for file in patch_files(tmp_path / "out" / PATCH)] == [PATCH, "patch.npz", CONVERTED]


def test_a_right_target_that_cant_be_edited_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = subject(traced(tmp_path, 1.0), tmp_path, channels_last=False)
    source = subject(torch_file("image", tmp_path), tmp_path, channels_last=False)
    monkeypatch.setattr("conrepair.diagnosis.repairs.repair.as_onnx", lambda *_: pytest.fail("it's converted"))
    result = repair_models(source, target, tmp_path / "out", _OPTIONS)
    assert not result.before.faults
    assert result.model is None


def test_what_an_editor_refuses_is_repaired_in_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = tflite_file("image", tmp_path)
    fault = next(fault for fault in faults() if fault.name == "weights-scaled")
    feeds = feeds_of("image", channels_last=True)
    wrong = inject_file(right, fault, feeds, np.random.default_rng(3), tmp_path / "faulty")
    assert wrong is not None
    for name in ("set_parameter", "graft"):
        monkeypatch.setattr(TfliteEditor, name, refuse)
    both = [subject(model, tmp_path, channels_last=True) for model in (right, wrong.model)]
    result = repair_models(*both, tmp_path / "out", _OPTIONS)
    assert result.mended
    assert result.delivery is not None
    assert "this place can't be changed" in result.delivery.reason
    assert result.model is not None
    assert result.model.framework == "onnx"
    assert result.unseen_after.error < 1e-4


def test_a_conversion_that_changes_more_is_not_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = subject(traced(tmp_path, 1.5), tmp_path, channels_last=False)
    other = subject(torch_file("image", tmp_path), tmp_path, channels_last=False)
    named = as_onnx(other, tmp_path / "right", "a reason")[0].model.path

    def convert(model: Model, folder: Path, options: object) -> str:
        (folder / "model.onnx").write_bytes(Path(named).read_bytes())
        return "model.onnx"

    step = CONVERTERS["torch-onnx-script"]
    put(monkeypatch, CONVERTERS, step.name, dataclasses.replace(step, convert=convert))
    with pytest.raises(ConversionError, match="that isn't the same"):
        as_onnx(target, tmp_path / "wrong", "a reason")
    monkeypatch.undo()

    def fail(*_: object) -> None:
        raise ConversionError("no route")

    monkeypatch.setattr("conrepair.diagnosis.repairs.repair.as_onnx", fail)
    with pytest.raises(ModelLoadError, match="neither an exported program"):
        repair_models(other, target, tmp_path / "out", _OPTIONS)

"""Faults that were put into files are repaired in the files' own format; what's right is left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from crossed import crossed

from benchmarks.faults.catalogue import faults
from benchmarks.faults.fault import Fault
from benchmarks.faults.inject_file import inject_file
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.diagnosis.repairs.repair import apply_patch, repair_models
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.whole import sha256_of
from tests.support.native_models import feeds_of, keras_file, tensorflow_file, tflite_file, torch_file

_SEED, _SAMPLES = 3, 12
_OPTIONS = RepairOptions(Options(samples=4, batch_size=4), seconds=60, unseen=8)
_QUICK = {
    *("bias-permuted", "range-too-small", "bounds-of-clip", "pads-shifted"),
    *("activation-missing", "operands-exchanged", "shortcut-missing", "labels-shifted", "weights-in-few-bits"),
}


def subject(model: Model, folder: Path, name: str = "image", *, channels_last: bool = True) -> FedModel:
    """A model with twelve samples of its inputs."""
    path = folder / "data.npz"
    if not path.exists():
        generator = np.random.default_rng(_SEED)
        drawn = {
            key: generator.normal(size=(_SAMPLES, *array.shape[1:])).astype(np.float32)
            for key, array in feeds_of(name, channels_last=channels_last).items()
        }
        np.savez(path, **drawn)
    inputs = framework(model.framework).describe(model).inputs
    return FedModel(model, inputs, DataReference("tensors", _SAMPLES, str(path), sha256_of(path)), None)


def repaired(right: Model, wrong: Model, folder: Path, name: str = "image") -> RepairResult:
    before = {item.path: sha256_of(Path(item.path)) for item in (right, wrong)}
    result = repair_models(subject(right, folder, name), subject(wrong, folder, name), folder / "out", _OPTIONS)
    assert before == {path: sha256_of(Path(path)) for path in before}
    return result


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=() if fault.name in _QUICK else pytest.mark.slow, id=fault.name)
        for fault in faults()
    ],
)
def test_a_fault_in_a_tflite_file_is_repaired_in_it(fault: Fault, tmp_path: Path) -> None:
    right = tflite_file("image", tmp_path)
    changed = inject_file(
        right, fault, feeds_of("image", channels_last=True), np.random.default_rng(_SEED), tmp_path / "faulty"
    )
    if changed is None:
        pytest.skip("has no place in this network")
    result = repaired(right, changed.model, tmp_path)
    assert result.before.faults
    assert result.mended, result.after.faults
    assert result.model is not None
    assert result.model.framework == "tflite"
    assert result.unseen_after.error < 1e-4
    assert len(result.edits) <= max(3, len(changed.layers))
    assert len(result.effects) >= 1


@pytest.mark.parametrize(
    ("name", "kind"),
    crossed(
        ["shortcut-missing", "operator-replaced"],
        ["keras", "torch", "tensorflow"],
        quick=[("shortcut-missing", "torch"), ("operator-replaced", "keras"), ("operator-replaced", "tensorflow")],
    ),
)
def test_joins_are_repaired_in_other_formats(kind: str, name: str, tmp_path: Path) -> None:
    makers = {"keras": keras_file, "torch": torch_file, "tensorflow": tensorflow_file}
    right = makers[kind]("image", tmp_path)
    last = kind != "torch"
    fault = next(fault for fault in faults() if fault.name == name)
    feeds = feeds_of("image", channels_last=last)
    changed = inject_file(right, fault, feeds, np.random.default_rng(_SEED), tmp_path / "faulty")
    assert changed is not None
    sides = [subject(model, tmp_path, channels_last=last) for model in (right, changed.model)]
    result = repair_models(sides[0], sides[1], tmp_path / "out", _OPTIONS)
    assert result.before.faults
    assert result.mended, result.after.faults
    assert result.model is not None
    assert result.model.framework == kind
    assert result.unseen_after.error < 1e-4
    assert len(result.edits) == 1


def test_a_repaired_model_stays_repaired_and_its_patch_can_be_made_again(tmp_path: Path) -> None:
    right = tflite_file("image", tmp_path)
    fault = next(fault for fault in faults() if fault.name == "weights-scaled")
    changed = inject_file(
        right, fault, feeds_of("image", channels_last=True), np.random.default_rng(_SEED), tmp_path / "faulty"
    )
    assert changed is not None
    first = repaired(right, changed.model, tmp_path)
    assert first.model is not None
    patch = read_patch(tmp_path / "out" / PATCH)
    again = apply_patch(*patch, changed.model, tmp_path / "again")
    assert sha256_of(Path(again.path)) == sha256_of(Path(first.model.path))
    with pytest.raises(DataError, match="for another model"):
        apply_patch(*patch, right, tmp_path / "other")
    (tmp_path / "second").mkdir()
    second = repaired(right, first.model, tmp_path / "second")
    assert second.mended
    assert second.edits == ()
    assert second.model is None


def test_what_is_right_is_left_alone(tmp_path: Path) -> None:
    right = tflite_file("image", tmp_path)
    result = repaired(right, right, tmp_path)
    assert (result.edits, result.model, result.tried) == ((), None, 0)
    assert list((tmp_path / "out").iterdir()) == []


def test_without_time_nothing_is_tried_and_nothing_is_written(tmp_path: Path) -> None:
    right = tflite_file("image", tmp_path)
    fault = next(fault for fault in faults() if fault.name == "weights-scaled")
    changed = inject_file(
        right, fault, feeds_of("image", channels_last=True), np.random.default_rng(_SEED), tmp_path / "faulty"
    )
    assert changed is not None
    sides = subject(right, tmp_path), subject(changed.model, tmp_path)
    result = repair_models(*sides, tmp_path / "out", RepairOptions(Options(samples=4, batch_size=4), seconds=0))
    assert not result.in_time
    assert not result.mended
    assert result.model is None

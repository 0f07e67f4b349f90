"""Faults of an ONNX file that were converted on to a SavedModel are repaired in the SavedModel."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import onnx
import pytest
import tensorflow as tf
from rewritten_networks import residual_blocks
from small_models import model_of

from benchmarks.faults.catalogue import faults
from benchmarks.faults.inject_file import inject_file
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.files.whole import sha256_of
from tests.support.native_models import feeds_of, torch_file

_ROUTE = ("onnx-keras", "keras-savedmodel")
_SAMPLES = 12
_OPTIONS = RepairOptions(Options(samples=4, batch_size=4), seconds=60, unseen=8)


def converted(model: Model, names: tuple[str, ...], folder: Path) -> Model:
    for name in names:
        step = converter(name)
        (folder / name).mkdir(parents=True)
        options = {key: option.default for key, option in step.options.items()}
        path = folder / name / step.convert(model, folder / name, options)
        model = Model(step.target, str(path), sha256_of(path))
    return model


def subject(model: Model, folder: Path) -> FedModel:
    path = folder / "data.npz"
    inputs = framework(model.framework).describe(model).inputs
    if not path.exists():
        drawn = np.random.default_rng(3).normal(size=(_SAMPLES, *inputs[0].shape[1:]))
        np.savez(path, image=drawn.astype(np.float32))
    return FedModel(model, inputs, DataReference("tensors", _SAMPLES, str(path), sha256_of(path)), None)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("weights-scaled", True),
        pytest.param("bias-permuted", True, marks=pytest.mark.slow),
        ("activation-missing", False),
        pytest.param("pads-shifted", False, marks=pytest.mark.slow),
        pytest.param("dilation-lost", False, marks=pytest.mark.slow),
        pytest.param("shortcut-missing", False, marks=pytest.mark.slow),
    ],
)
def test_a_fault_that_was_converted_on_is_repaired(name: str, kept: bool, tmp_path: Path) -> None:
    right = converted(torch_file("image", tmp_path), ("torch-onnx-dynamo",), tmp_path / "right")
    fault = next(fault for fault in faults() if fault.name == name)
    injection = inject_file(right, fault, feeds_of("image"), np.random.default_rng(3), tmp_path / "faulty")
    assert injection is not None
    wrong = converted(injection.model, _ROUTE, tmp_path / "target")
    before = sha256_of(Path(wrong.path))
    result = repair_models(subject(right, tmp_path), subject(wrong, tmp_path), tmp_path / "out", _OPTIONS)
    assert sha256_of(Path(wrong.path)) == before
    assert result.before.faults
    assert result.mended, result.after.faults
    assert result.model is not None
    assert result.model.framework == "tensorflow"
    assert result.unseen_after.error < 1e-4
    assert len(result.edits) <= 2
    again, original = (tf.saved_model.load(item.path).signatures for item in (result.model, wrong))
    assert set(again) == set(original)
    for key, function in original.items():
        assert again[key].structured_input_signature == function.structured_input_signature
        assert again[key].structured_outputs == function.structured_outputs
    same = (Path(result.model.path) / "saved_model.pb").read_bytes() == (
        Path(wrong.path) / "saved_model.pb"
    ).read_bytes()
    assert same is kept  # numbers alone leave the graph as it was


@pytest.mark.slow
def test_epsilons_of_all_normalizations_are_one_rule(tmp_path: Path) -> None:
    """Each is a product and a sum there, of numbers that are computed from variables and an epsilon."""
    right = model_of("onnx", residual_blocks(tmp_path / "right.onnx"))
    wrong = onnx.load(right.path)
    norms = [node for node in wrong.graph.node if node.op_type == "BatchNormalization"]
    for node in norms:
        node.attribute.append(onnx.helper.make_attribute("epsilon", 1e-3))
    onnx.save(wrong, tmp_path / "wrong.onnx")
    made = converted(model_of("onnx", tmp_path / "wrong.onnx"), _ROUTE, tmp_path / "target")
    result = repair_models(subject(right, tmp_path), subject(made, tmp_path), tmp_path / "out", _OPTIONS)
    (rule,) = result.before.rules
    assert "epsilon" in rule.words
    assert len(rule.layers) == len(norms)
    assert result.mended, result.after.faults
    assert len(result.edits) == 2 * len(norms)  # a factor and an offset, and no operator
    assert result.unseen_after.error < 1e-5


def test_a_saved_model_that_is_right_is_left_alone(tmp_path: Path) -> None:
    right = converted(torch_file("image", tmp_path), ("torch-onnx-dynamo",), tmp_path / "right")
    made = converted(right, _ROUTE, tmp_path / "target")
    result = repair_models(subject(right, tmp_path), subject(made, tmp_path), tmp_path / "out", _OPTIONS)
    assert (result.edits, result.model, result.tried) == ((), None, 0)
    assert dataclasses.asdict(result.unseen_after) == dataclasses.asdict(result.unseen_before)

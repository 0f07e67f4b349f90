"""Faults in files of eight bits are repaired without undoing the quantization."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx_networks import drawn, written
from small_models import model_of

from benchmarks.faults.steps import insert
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.files.whole import sha256_of

_SAMPLES = 12


def subject(model: Model, folder: Path) -> FedModel:
    path = folder / "data.npz"
    if not path.exists():
        generator = np.random.default_rng(3)
        names = [spec.name for spec in framework(model.framework).describe(model).inputs]
        np.savez(path, **{name: generator.normal(size=(_SAMPLES, 16)).astype(np.float32) for name in names})
    inputs = framework(model.framework).describe(model).inputs
    return FedModel(model, inputs, DataReference("tensors", _SAMPLES, str(path), sha256_of(path)), None)


def integers(path: Path) -> dict[str, int]:
    """The constants of eight bits, with their types."""
    eight = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
    return {item.name: item.data_type for item in onnx.load(path).graph.initializer if item.data_type in eight}


def quantized(model: Model, folder: Path) -> Path:
    """Weights of eight bits; activations are quantized while it runs."""
    step = converter("onnx-quantize-dynamic")
    folder.mkdir()
    return folder / step.convert(model, folder, step.complete({}))


_OPTIONS = RepairOptions(Options(samples=4, batch_size=4, quantized=True), seconds=60, unseen=8)


def test_an_operator_added_behind_a_layer_of_integers_is_taken_out(tmp_path: Path) -> None:
    text = """small (float[batch, 16] x) => (float[batch, 8] y) {
        h = MatMul (x, w)
        r = Relu (h)
        g = MatMul (r, v)
        y = Softmax (g)
    }"""
    right = model_of("onnx", written(tmp_path / "right.onnx", text, {"w": drawn(16, 16), "v": drawn(16, 8, seed=1)}))
    path = quantized(right, tmp_path / "made")
    editor = open_editor(model_of("onnx", path))
    insert(editor, editor.graph.outputs[0], [("Softmax", {"axis": 1}, [])], "twice")
    wrong = editor.save(tmp_path / "faulty", "wrong")
    result = repair_models(subject(right, tmp_path), subject(wrong, tmp_path), tmp_path / "out", _OPTIONS)
    assert result.before.faults
    assert result.mended, result.after.faults
    assert result.model is not None
    assert len(result.edits) == 1
    assert "is removed" in result.edits[0]
    assert integers(Path(result.model.path)) == integers(path)
    assert result.unseen_after.error < 0.05


def test_layers_of_integers_are_not_written_anew(tmp_path: Path) -> None:
    text = """small (float[batch, 16] x, float[batch, 16] z) => (float[batch, 8] y) {
        h = MatMul (x, w)
        r = Relu (h)
        g = MatMul (z, u)
        t = Tanh (g)
        s = Add (r, t)
        y = MatMul (s, v)
    }"""
    weights = {"w": drawn(16, 16), "u": drawn(16, 16, seed=2), "v": drawn(16, 8, seed=1)}
    right = model_of("onnx", written(tmp_path / "right.onnx", text, weights))
    path = quantized(right, tmp_path / "made")
    editor = open_editor(model_of("onnx", path))
    editor.exchange_inputs(0, 1)
    wrong = editor.save(tmp_path / "faulty", "wrong")
    result = repair_models(subject(right, tmp_path), subject(wrong, tmp_path), tmp_path / "out", _OPTIONS)
    assert result.mended, result.after.faults
    assert result.model is not None
    assert result.edits == ("the inputs 0 and 1 are exchanged",)
    assert integers(Path(result.model.path)) == integers(path)

"""A gate's weights in eight bits with a wrong scale: named, and put back bit by bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from saturating import exact_products
from small_models import model_of
from tflite_files import fused_lstm

from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.edits import Requantize
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.tflite.edit.file import EditedTfliteFile
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.verdicts.evaluate.verdict import Verdict

_OPTIONS = Options(samples=4, batch_size=2, quantized=True)
_GATE = "hidden_to_f"


def _subject(model: Model, rows: np.ndarray, folder: Path) -> FedModel:
    inputs = framework(model.framework).describe(model).inputs
    path = folder / "rows.npz"
    np.savez(path, **{inputs[0].name: rows})
    return FedModel(model, inputs, DataReference("tensors", len(rows), str(path), sha256_of(path)), None)


def _put_back(source: Model, wrong: Model, rows: np.ndarray, folder: Path, words: str) -> Path:
    """The file that a repair by nothing else than new scales writes."""
    ours, theirs = (_subject(model, rows, folder) for model in (source, wrong))
    result = repair_models(ours, theirs, folder / "out", RepairOptions(_OPTIONS, seconds=60, unseen=4))
    assert any(words in text for fault in result.before.faults for text in fault.evidence), result.before.faults
    assert result.mended, result.after.faults
    edits, _ = read_patch(folder / "out" / PATCH)
    assert [type(edit) for edit in edits.edits] == [Requantize]
    assert result.model is not None
    return Path(result.model.path)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(8, 5, 3)).astype(np.float32)


def test_one_gate_of_the_fused_lstm_of_tflite(rows: np.ndarray, tmp_path: Path) -> None:
    source = fused_lstm(tmp_path / "right.tflite", hidden=12)
    right = fused_lstm(tmp_path / "bits.tflite", hidden=12, scaled={})
    ours, theirs = (_subject(model, rows, tmp_path) for model in (source, right))
    assert localize_models(ours, theirs, tmp_path / "right", _OPTIONS).verdict is Verdict.QUANTIZED
    wrong = fused_lstm(tmp_path / "wrong.tflite", hidden=12, scaled={_GATE: 1.3})
    found = _put_back(source, wrong, rows, tmp_path, "are scaled by 1.3 in 12 of 48 slices of axis 1")
    held, repaired = EditedTfliteFile(Path(right.path)), EditedTfliteFile(found)
    for index in range(len(held.graph.tensors)):
        np.testing.assert_array_equal(held.constant(index), repaired.constant(index))
        np.testing.assert_array_equal(held.scales(index), repaired.scales(index))


def test_other_numbers_for_one_gate_leave_the_others(tmp_path: Path) -> None:
    right = fused_lstm(tmp_path / "right.tflite", peepholes=True)
    editor = open_editor(right)
    (node,) = editor.graph.nodes
    arrays = {role: parameter.numpy() for role, parameter in node.parameters.items()}
    assert {role: array.shape for role, array in arrays.items()} == {
        "W": (1, 16, 3), "R": (1, 16, 4), "B": (1, 32), "P": (1, 12),
    }  # fmt: skip
    changed = arrays["R"].copy()
    changed[:, 8:12] = 2.0  # of the forget gate
    bias = arrays["B"].copy()
    bias[:, 16:20] += 1.0  # a second one, of the input gate
    editor.set_parameter(node, "R", changed)
    editor.set_parameter(node, "B", bias)
    saved = EditedTfliteFile(Path(editor.save(tmp_path, "changed").path))
    before = EditedTfliteFile(Path(right.path))
    differing = {
        before.names[index]
        for index in range(len(before.graph.tensors))
        if not np.array_equal(before.constant(index), saved.constant(index))
    }
    assert differing == {_GATE, "bias_i"}
    np.testing.assert_array_equal(saved.constant(saved.names.index(_GATE)), np.full((4, 4), 2, np.float32))
    np.testing.assert_allclose(
        saved.constant(saved.names.index("bias_i")), before.constant(before.names.index("bias_i")) + 1, rtol=1e-6
    )


class _Net(torch.nn.Module):
    def __init__(self, bidirectional: bool) -> None:
        super().__init__()
        self.recurrent = torch.nn.LSTM(3, 16, batch_first=True, bidirectional=bidirectional)
        self.last = torch.nn.Linear(32 if bidirectional else 16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.recurrent(x)[0][:, -1])


@exact_products
@pytest.mark.parametrize("place", [8, 10], ids=["input", "recurrent"])
@pytest.mark.parametrize("per_channel", [False, True], ids=["tensor", "channel"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["forward", "both"])
def test_onnx_runtimes_lstm_of_integers(
    rows: np.ndarray, tmp_path: Path, place: int, per_channel: bool, bidirectional: bool
) -> None:
    torch.manual_seed(2)
    net = _Net(bidirectional).eval()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter *= 2
    paths = [tmp_path / f"{name}.onnx" for name in ("source", "right", "wrong")]
    torch.onnx.export(net, (torch.zeros(2, 5, 3),), paths[0], dynamo=False, input_names=["x"], opset_version=17)
    quantize_dynamic(paths[0], paths[1], weight_type=QuantType.QInt8, per_channel=per_channel)
    proto = onnx.load(paths[1])
    node = next(item for item in proto.graph.node if item.op_type == "DynamicQuantizeLSTM")
    held = {item.name: item for item in proto.graph.initializer}
    scale = held[node.input[place]]
    scale.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scale) * np.float32(1.3), scale.name))
    onnx.save(proto, paths[2])
    source, right, wrong = (model_of("onnx", path) for path in paths)
    ours, theirs = (_subject(model, rows, tmp_path) for model in (source, right))
    assert localize_models(ours, theirs, tmp_path / "right", _OPTIONS).verdict is Verdict.QUANTIZED
    found = _put_back(source, wrong, rows, tmp_path, "are scaled by 1.3")
    repaired = {item.name: numpy_helper.to_array(item) for item in onnx.load(found).graph.initializer}
    for item in onnx.load(paths[1]).graph.initializer:
        np.testing.assert_array_equal(repaired[item.name], numpy_helper.to_array(item))

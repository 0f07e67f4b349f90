"""In a loop that's written turn by turn, one turn gets the numbers that the others have, or all get the loop's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_networks import drawn, written
from small_models import model_of

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.edits import SetParameter
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.files.whole import sha256_of

_TURNS, _SIZE, _COUNT = 5, 6, 16


def source(path: Path) -> Model:
    """A recurrent layer in one operator."""
    text = f"""small (float[{_TURNS}, batch, 4] x) => (float[batch, 3] y) {{
        whole, last = RNN <hidden_size = {_SIZE}> (x, w, r, b)
        flat = Squeeze (last, axes)
        y = MatMul (flat, v)
    }}"""
    weights = {
        "w": drawn(1, _SIZE, 4, seed=1), "r": drawn(1, _SIZE, _SIZE, seed=2), "b": drawn(1, 2 * _SIZE, seed=3),
        "axes": np.array([0]), "v": drawn(_SIZE, 3, seed=4),
    }  # fmt: skip
    return model_of("onnx", written(path, text, weights))


def unrolled(path: Path) -> Model:
    """The same, turn by turn."""
    w, r, b = drawn(1, _SIZE, 4, seed=1)[0], drawn(1, _SIZE, _SIZE, seed=2)[0], drawn(1, 2 * _SIZE, seed=3)[0]
    lines = []
    for turn in range(_TURNS):
        lines.append(f"x{turn} = Gather <axis = 0> (x, t{turn})")
        lines.append(f"p{turn} = MatMul (x{turn}, wt)")
        lines.append(f"i{turn} = Add (p{turn}, b)")
        if turn:
            lines.append(f"m{turn} = MatMul (h{turn - 1}, rt)")
            lines.append(f"s{turn} = Add (i{turn}, m{turn})")
        lines.append(f"h{turn} = Tanh ({'s' if turn else 'i'}{turn})")
    body = "\n".join(lines)
    text = f"small (float[{_TURNS}, batch, 4] x) => (float[batch, 3] y) {{\n{body}\ny = MatMul (h{_TURNS - 1}, v)\n}}"
    weights = {
        "wt": w.T.copy(), "rt": r.T.copy(), "b": b[:_SIZE] + b[_SIZE:], "v": drawn(_SIZE, 3, seed=4),
        **{f"t{turn}": np.array(turn) for turn in range(_TURNS)},
    }  # fmt: skip
    return model_of("onnx", written(path, text, weights))


def subject(model: Model, folder: Path) -> FedModel:
    path = folder / "data.npz"
    np.savez(path, x=np.random.default_rng(5).normal(size=(_TURNS, 4, 4)).astype(np.float32))
    data = DataReference("tensors", _TURNS, str(path), sha256_of(path))
    return FedModel(model, framework("onnx").describe(model).inputs, data, None)


@pytest.mark.parametrize(("tensor", "role", "factor"), [("p2", "weight", 1.5), ("i2", "operand", 0.0)])
def test_one_turn_gets_what_the_others_have(tmp_path: Path, tensor: str, role: str, factor: float) -> None:
    right, target = source(tmp_path / "right.onnx"), unrolled(tmp_path / "target.onnx")
    editor = open_editor(target)
    node = next(node for node in editor.graph.nodes if node.outputs[0] == tensor)
    editor.set_parameter(node, role, node.parameters[role].numpy() * np.float32(factor))
    wrong = editor.save(tmp_path, "wrong")
    options = RepairOptions(Options(samples=_COUNT, batch_size=4), seconds=60, unseen=8)
    result = repair_models(subject(right, tmp_path), subject(wrong, tmp_path), tmp_path / "out", options)
    assert result.before.faults
    assert result.mended, result.after.faults
    edits = read_patch(tmp_path / "out" / PATCH)[0].edits
    assert [(type(edit), edit.role) for edit in edits] == [(SetParameter, role)]  # type: ignore[union-attr]
    assert result.unseen_after.error < 1e-5


@pytest.mark.parametrize("transposed", [False, True])
def test_all_turns_get_what_the_loop_has(tmp_path: Path, transposed: bool) -> None:
    """Which of a matrix's two orders the turns have isn't known where their numbers are all wrong."""
    right, target = source(tmp_path / "right.onnx"), unrolled(tmp_path / "target.onnx")
    proto = onnx.load(target.path)
    tensor = next(item for item in proto.graph.initializer if item.name == "rt")
    values = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values.T if transposed else values[::-1]), "rt"))
    onnx.save(proto, tmp_path / "wrong.onnx")
    wrong = model_of("onnx", tmp_path / "wrong.onnx")
    options = RepairOptions(Options(samples=_COUNT, batch_size=4), seconds=60, unseen=8)
    result = repair_models(subject(right, tmp_path), subject(wrong, tmp_path), tmp_path / "out", options)
    assert result.before.faults
    assert result.mended, result.after.faults
    edits = read_patch(tmp_path / "out" / PATCH)[0].edits
    assert {(type(edit), edit.role) for edit in edits} == {(SetParameter, "weight")}  # type: ignore[union-attr]
    assert result.model is not None
    held = {item.name: numpy_helper.to_array(item) for item in onnx.load(result.model.path).graph.initializer}
    assert any(np.array_equal(array, values) for array in held.values())

"""A number in one of the pieces that a converter has written a layer as."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
from keras import layers
from onnx_networks import drawn, written
from small_models import model_of

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.edits import Graft, SetAttributes, SetParameter
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.files.whole import sha256_of

_COUNT, _EPSILON = 16, 1e-3


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Model]:
    """A network with a normalization, and its TFLite file, which has it as means and products."""
    folder = tmp_path_factory.mktemp("pieces")
    keras.utils.set_random_seed(7)
    rows = keras.Input((12,), name="rows")
    y = layers.LayerNormalization(epsilon=_EPSILON)(layers.Dense(16, activation="tanh")(rows))
    keras.Model(rows, layers.Dense(5)(y)).save(folder / "right.keras")
    right = model_of("keras", folder / "right.keras")
    step = converter("keras-tflite")
    (folder / "made").mkdir()
    return right, model_of("tflite", folder / "made" / step.convert(right, folder / "made", step.complete({})))


def subject(model: Model, folder: Path) -> FedModel:
    path = folder / "data.npz"
    np.savez(path, rows=np.random.default_rng(5).normal(size=(_COUNT, 12)).astype(np.float32))
    inputs = framework(model.framework).describe(model).inputs
    return FedModel(model, inputs, DataReference("tensors", _COUNT, str(path), sha256_of(path)), None)


def test_a_wrong_epsilon_is_the_sources_again(models: tuple[Model, Model], tmp_path: Path) -> None:
    """Without it the result is nearly right, too: the number is what differs, and what's repaired."""
    right, target = models
    editor = open_editor(target)
    node = next(
        node for node in editor.graph.nodes if node.op == "Add" and node.parameters["operand"].numpy().size == 1
    )
    np.testing.assert_allclose(node.parameters["operand"].numpy(), _EPSILON)
    editor.set_parameter(node, "operand", np.array(0.2, np.float32))
    wrong = editor.save(tmp_path, "wrong")
    options = RepairOptions(Options(samples=8, batch_size=4), seconds=60, unseen=8)
    result = repair_models(subject(right, tmp_path), subject(wrong, tmp_path), tmp_path / "out", options)
    assert result.mended, result.after.faults
    (edit,) = read_patch(tmp_path / "out" / PATCH)[0].edits
    assert isinstance(edit, SetParameter)
    assert (edit.node, edit.role, edit.values.shape) == (node.name, "operand", ())
    np.testing.assert_allclose(edit.values, _EPSILON, rtol=1e-6)


_PIECES = """[in] d = Tanh (x) [mean] m = ReduceMean <axes = [-1]> (d) [centre] c = Sub (d, m) [square] q = Mul (c, c)
    [variance] v = ReduceMean <axes = [-1]> (q) [add] a = Add (v, epsilon) [root] r = Sqrt (a) [divide] e = Div (c, r)
    [scale] f = Mul (e, g) [shift] t = Add (f, h) [last] y = Softplus (t)"""
_WHOLE = "[in] d = Tanh (x) [norm] t = LayerNormalization <epsilon = 1e-3> (d, g, h) [last] y = Softplus (t)"


def _written(path: Path, lines: str) -> Model:
    numbers = {"g": drawn(8, seed=2, scale=0.2) + 1, "h": drawn(8, seed=3), "epsilon": np.full((), 1e-3, np.float32)}
    used = {name: array for name, array in numbers.items() if f", {name})" in lines or f", {name}," in lines}
    text = f"small (float[batch, 3, 8] rows) => (float[batch, 3, 8] y) {{ {lines.replace('(x)', '(rows)')} }}"
    return model_of("onnx", written(path, text, used, opset=17))


@pytest.mark.parametrize(
    ("right", "wrong", "edit"),
    [
        ("[root] r = Sqrt (a) [divide] e = Div (c, r)", "[divide] e = Div (c, a)", Graft),
        ("[variance] v = ReduceMean <axes = [-1]>", "[variance] v = ReduceMean <axes = [1]>", SetAttributes),
    ],
)
def test_a_piece_that_is_missing_or_works_along_another_axis(
    right: str, wrong: str, edit: type, tmp_path: Path
) -> None:
    rows = np.random.default_rng(5).normal(size=(_COUNT, 3, 8)).astype(np.float32)
    np.savez(tmp_path / "data.npz", rows=rows)
    data = DataReference("tensors", _COUNT, str(tmp_path / "data.npz"), sha256_of(tmp_path / "data.npz"))
    lines = " ".join(_PIECES.split())
    assert right in lines
    models = _written(tmp_path / "s.onnx", _WHOLE), _written(tmp_path / "t.onnx", lines.replace(right, wrong))
    sides = [FedModel(item, framework("onnx").describe(item).inputs, data, None) for item in models]
    options = RepairOptions(Options(samples=8, batch_size=4), seconds=60, unseen=8)
    result = repair_models(*sides, tmp_path / "out", options)
    assert result.mended, result.after.faults
    (made,) = read_patch(tmp_path / "out" / PATCH)[0].edits
    assert isinstance(made, edit)

"""An output more, which is a tensor that the model computes anyway; an output less."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx_networks import written
from small_models import model_of

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import Operation
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.graph.layer_graph import Array
from tests.support.native_models import feeds_of, keras_file, tensorflow_file, tflite_file, torch_file


def onnx_file(name: str, folder: Path) -> Model:
    text = """small (float[batch, 8, 8, 3] image) => (float[batch, 8, 8, 3] y) {
        [relu] r = Relu (image)
        y = Neg (r)
    }"""
    return model_of("onnx", written(folder / f"{name}.onnx", text, {}))


_FILES: Mapping[str, Callable[[str, Path], Model]] = {
    "onnx": onnx_file,
    "keras": keras_file,
    "torch": torch_file,
    "tflite": tflite_file,
    "tensorflow": tensorflow_file,
}


def answers(model: Model, picture: Array) -> dict[str, Array]:
    runnable = framework(model.framework).load(model)
    return dict(runnable.run({runnable.inputs[0].name: picture}))


@pytest.mark.parametrize("kind", list(_FILES))
def test_a_tensor_becomes_an_output(kind: str, tmp_path: Path) -> None:
    model = _FILES[kind]("image", tmp_path)
    picture = feeds_of("image", channels_last=kind != "torch")["image"]
    if kind == "onnx":
        picture = np.random.default_rng(1).normal(size=(2, 8, 8, 3)).astype(np.float32)
    editor = open_editor(model)
    node = next(node for node in editor.graph.nodes if node.op in {"Relu", "Clip"})
    editor.add_output(node.outputs[0])
    right, found = answers(model, picture), answers(editor.save(tmp_path, "more"), picture)
    assert len(found) == len(right) + 1
    if kind == "torch":  # which calls its outputs by their places, where there are several
        right = {f"output_{place}": array for place, array in enumerate(right.values())}
    for name, array in right.items():
        np.testing.assert_array_equal(found[name], array)
    (added,) = (array for name, array in found.items() if name not in right)
    assert added.min() == 0
    assert added.max() > 0
    assert list(added.shape)[1:] == list(editor.graph.tensors[node.outputs[0]].shape or ())[1:]


@pytest.mark.parametrize("kind", ["keras", "torch"])
def test_an_output_more_and_one_less(kind: str, tmp_path: Path) -> None:
    model = {"keras": keras_of_four, "torch": torch_of_four}[kind](tmp_path)
    feed = np.random.default_rng(4).normal(size=(2, 4)).astype(np.float32)
    runnable = framework(kind).load(model)
    right = list(runnable.run({runnable.inputs[0].name: feed}).values())
    editor = open_editor(model)
    editor.add_output(editor.graph.outputs[1])
    editor.drop_output(1)
    runnable = framework(kind).load(editor.save(tmp_path, "moved"))
    found = list(runnable.run({runnable.inputs[0].name: feed}).values())
    for array, place in zip(found, [0, 2, 3, 1], strict=True):
        np.testing.assert_allclose(array, right[place], rtol=1e-6)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("kind", ["onnx", "tflite", "tensorflow", "keras", "torch"])
def test_an_output_is_left_out(kind: str, place: int, tmp_path: Path) -> None:
    files = {"tflite": tflite_file, "tensorflow": tensorflow_file, "keras": keras_file, "torch": torch_file}
    if kind == "onnx":
        text = """two (float[batch, 4] x) => (float[batch, 4] first, float[batch, 4] second) {
            shared = Relu (x)
            first = Neg (shared)
            inner = Exp (shared)
            second = Tanh (inner)
        }"""
        model = model_of("onnx", written(tmp_path / "two.onnx", text, {}))
    else:
        model = files[kind]("pair", tmp_path)
    before = framework(model.framework).load(model)
    feeds = {
        spec.name: np.random.default_rng(2).normal(size=[2 if isinstance(size, str) else size for size in spec.shape])
        for spec in before.inputs
    }
    feeds = {spec.name: feeds[spec.name].astype(spec.dtype) for spec in before.inputs}
    right = dict(before.run(feeds))
    editor = open_editor(model)
    operators = len(editor.graph.nodes)
    editor.drop_output(place)
    changed = editor.save(tmp_path, "fewer")
    after = framework(changed.framework).load(changed)
    given = dict(zip([spec.name for spec in after.inputs], feeds.values(), strict=True))
    found = dict(after.run(given))
    (left,) = found.values()
    assert sum(np.allclose(left, array, rtol=1e-5, atol=1e-6) for array in right.values()) == 1
    again = open_editor(changed).graph
    kept, (output,) = editor.graph.outputs[1 - place], again.outputs
    assert again.producers[output].op == editor.graph.producers[kept].op
    assert len(again.nodes) < operators


def onnx_of_four(folder: Path) -> Model:
    ends = ", ".join(f"float[batch, 4] {name}" for name in "abcd")
    text = f"""four (float[batch, 4] x) => ({ends}) {{
        a = Neg (x)
        b = Relu (x)
        c = Tanh (x)
        d = Sigmoid (x)
    }}"""
    return model_of("onnx", written(folder / "four.onnx", text, {}))


def keras_of_four(folder: Path) -> Model:
    import keras

    x = keras.Input((4,), name="x")
    layers = [keras.layers.Activation(name, name=name) for name in ("linear", "relu", "tanh", "sigmoid")]
    keras.Model(x, [layer(x) for layer in layers]).save(folder / "four.keras")
    return model_of("keras", folder / "four.keras")


def torch_of_four(folder: Path) -> Model:
    import torch
    from small_models import export_pt2

    class Four(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return -x, torch.relu(x), torch.tanh(x), torch.sigmoid(x)

    return model_of("torch", export_pt2(Four(), [torch.ones(2, 4)], folder / "four.pt2"))


@pytest.mark.parametrize(("dropped", "exchanged"), [((1, 2), None), ((1, 3), None), ((2, 0), None), ((1,), (0, 3))])
@pytest.mark.parametrize("make", [onnx_of_four, keras_of_four, torch_of_four])
def test_places_are_those_of_the_file_as_it_came(
    make: Callable[[Path], Model], dropped: tuple[int, ...], exchanged: tuple[int, int] | None, tmp_path: Path
) -> None:
    model = make(tmp_path)
    picture = np.random.default_rng(4).normal(size=(2, 4)).astype(np.float32)
    right = list(answers(model, picture).values())
    editor = open_editor(model)
    for place in dropped:
        editor.drop_output(place)
    if exchanged is not None:
        editor.exchange_outputs(*exchanged)
        right[exchanged[0]], right[exchanged[1]] = right[exchanged[1]], right[exchanged[0]]
    found = list(answers(editor.save(tmp_path, "fewer"), picture).values())
    wanted = [array for place, array in enumerate(right) if place not in dropped]
    assert len(found) == len(wanted)
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
    with pytest.raises(NotEditableError, match="left out"):
        editor.drop_output(dropped[0])


@pytest.mark.parametrize("kind", ["onnx", "torch", "tflite"])
def test_an_output_is_computed_anew_in_its_place(kind: str, tmp_path: Path) -> None:
    model = _FILES[kind]("image", tmp_path)
    picture = feeds_of("image", channels_last=kind != "torch")["image"]
    if kind == "onnx":
        picture = np.random.default_rng(1).normal(size=(2, 8, 8, 3)).astype(np.float32)
    editor = open_editor(model)
    inner = next(node for node in editor.graph.nodes if node.op in {"Relu", "Clip"}).outputs[0]
    editor.add_output(inner)
    editor.add_output("root", [Operation("Abs", (inner,)), Operation("Sqrt", (0,))], 0)
    arrays = [*answers(editor.save(tmp_path, "more"), picture).values()]
    assert len(arrays) == 3
    made = arrays.pop(-1 if kind == "tflite" else 0)  # a signature has names, and no places
    alike = [other for other in arrays if other.shape == made.shape]
    assert any(np.allclose(made, np.sqrt(np.abs(other)), atol=1e-6) for other in alike)


@pytest.mark.parametrize("kind", ["keras", "tensorflow"])
def test_formats_that_can_not_compute_an_output_say_so(kind: str, tmp_path: Path) -> None:
    editor = open_editor(_FILES[kind]("image", tmp_path))
    with pytest.raises(NotEditableError, match="root can't be computed"):
        editor.add_output("root", [Operation("Abs", (editor.graph.outputs[0],))])

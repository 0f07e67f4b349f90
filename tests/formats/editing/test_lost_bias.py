"""A bias that a layer has lost is given to it in its own place, where its format has one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_networks import drawn, written
from small_models import export_pt2, model_of

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.graph.layer_graph import Array

_SIZES = (2, 5, 5, 3)
_BIASES = {"first": drawn(4, seed=1), "last": drawn(6, seed=2)}
_FORMATS = ("onnx", "keras", "tflite", "torch")


def onnx_file(folder: Path) -> Model:
    text = """small (float[2, 3, 5, 5] image) => (float[2, 6] y) {
        first = Conv (image, kernel)
        r = Relu (first)
        p = GlobalAveragePool (r)
        f = Flatten (p)
        last = Gemm <beta = 2.0> (f, dense)
        y = Tanh (last)
    }"""
    weights = {"kernel": drawn(4, 3, 3, 3, seed=3), "dense": drawn(4, 6, seed=4)}
    return model_of("onnx", written(folder / "small.onnx", text, weights))


def keras_network() -> object:
    import keras

    keras.utils.set_random_seed(1)
    image = keras.Input(batch_shape=_SIZES, name="image")
    hidden = keras.layers.Conv2D(4, 3, activation="relu", use_bias=False, name="first")(image)
    hidden = keras.layers.GlobalAveragePooling2D()(hidden)
    return keras.Model(image, keras.layers.Dense(6, activation="tanh", use_bias=False, name="last")(hidden))


def keras_file(folder: Path) -> Model:
    keras_network().save(folder / "small.keras")
    return model_of("keras", folder / "small.keras")


def tflite_file(folder: Path) -> Model:
    import tensorflow as tf

    (folder / "small.tflite").write_bytes(tf.lite.TFLiteConverter.from_keras_model(keras_network()).convert())
    return model_of("tflite", folder / "small.tflite")


def torch_file(folder: Path) -> Model:
    import torch

    class Small(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(1)
            self.first, self.last = torch.nn.Conv2d(3, 4, 3, bias=False), torch.nn.Linear(4, 6, bias=False)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.last(torch.relu(self.first(image)).mean((2, 3))))

    export_pt2(Small().eval(), [torch.zeros(2, 3, 5, 5)], folder / "small.pt2")
    return model_of("torch", folder / "small.pt2")


_MAKERS = {"onnx": onnx_file, "keras": keras_file, "tflite": tflite_file, "torch": torch_file}


def answer(model: Model) -> Array:
    runnable = framework(model.framework).load(model)
    image = np.random.default_rng(5).normal(size=_SIZES).astype(np.float32)
    turned = image if runnable.inputs[0].shape[-1] == 3 else image.transpose(0, 3, 1, 2)
    (result,) = runnable.run({runnable.inputs[0].name: turned}).values()
    return np.asarray(result)


@pytest.mark.parametrize("kind", _FORMATS)
def test_as_an_addition_behind_the_layer_would(kind: str, tmp_path: Path) -> None:
    from conrepair.formats.editing.operation import Operation

    model = _MAKERS[kind](tmp_path)
    own, behind = open_editor(model), open_editor(model)
    for role, operator in (("first", "Conv"), ("last", "MatMul")):
        bias = _BIASES[role]
        (node,) = (item for item in own.graph.nodes if item.op == operator)
        if "bias" in node.parameters:  # the converter has written zeros
            assert kind == "tflite"
        own.set_parameter(node, "bias", bias)
        spread = bias if operator == "MatMul" or node.channels_last else bias.reshape(-1, 1, 1)
        tensor = node.outputs[0]
        behind.graft(tensor, [Operation("Add", (tensor,), {}, {"operand": spread})], "bias")
    given, right = own.save(tmp_path, "own"), behind.save(tmp_path, "behind")
    np.testing.assert_allclose(answer(given), answer(right), rtol=1e-5, atol=1e-6)
    assert np.abs(answer(given) - answer(model)).max() > 0.01
    nodes = open_editor(given).graph.nodes
    assert len(nodes) == len(own.graph.nodes), "no operator more"
    assert all("bias" in node.parameters for node in nodes if node.op in {"Conv", "MatMul"})


def test_where_there_is_no_place(tmp_path: Path) -> None:
    text = "small (float[2, 4] x) => (float[2, 6] y) { y = MatMul (x, w) }"
    editor = open_editor(model_of("onnx", written(tmp_path / "s.onnx", text, {"w": drawn(4, 6)})))
    with pytest.raises(NotEditableError, match="y \\(MatMul\\) has no place for a bias"):
        editor.set_parameter(editor.graph.nodes[0], "bias", _BIASES["last"])

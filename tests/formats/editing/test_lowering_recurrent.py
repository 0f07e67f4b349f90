"""Recurrent layers as steps, and in NumPy, compute what ONNX Runtime's operators do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_networks import drawn, specs, written
from small_models import model_of

from conrepair.diagnosis.localization.faces.recurrent.recurrence import layers_of_node
from conrepair.formats.editing.lowering import lower
from conrepair.formats.editing.operation import Operation
from conrepair.formats.onnx.edit.editor import OnnxEditor
from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.formats.onnx.read.network import open_network
from conrepair.ground.graph.layer_graph import Array

STEPS, BATCH, WIDTH = 5, 2, 3  # as many states as features, so that a result has its operand's shape
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def onnx_file(folder: Path, op: str, options: str) -> Path:
    rows = GATES[op] * WIDTH
    weights = {
        "w": drawn(1, rows, WIDTH, seed=1, scale=1.0), "r": drawn(1, rows, WIDTH, seed=2, scale=1.0),
        "b": drawn(1, 2 * rows, seed=3), "one": np.array([1]),
    }  # fmt: skip
    lines = f"o = {op} <hidden_size = {WIDTH}{options}> (x, w, r, b)\n y = Squeeze (o, one)"
    head = f"small (float[{STEPS}, {BATCH}, {WIDTH}] x) => (float[{STEPS}, {BATCH}, {WIDTH}] y)"
    return written(folder / "layer.onnx", f"{head} {{ {lines} }}", weights)


@pytest.mark.parametrize(
    ("op", "options"),
    [
        ("LSTM", ""),
        ("LSTM", ', direction = "reverse"'),
        ("LSTM", ', activations = ["Sigmoid", "Relu", "Tanh"]'),
        ("GRU", ""),
        ("GRU", ", linear_before_reset = 1"),
        ("RNN", ', activations = ["Relu"]'),
    ],
)
def test_steps_compute_what_the_layer_does(op: str, options: str, tmp_path: Path) -> None:
    model = model_of("onnx", onnx_file(tmp_path, op, options))
    x = drawn(STEPS, BATCH, WIDTH, seed=4, scale=1.0)
    expected = OnnxRunnable(model).run({"x": x})["y"]
    [node] = [node for node in open_network(model, specs(model, {"x": x})).graph.nodes if node.op == op]
    [layer] = layers_of_node(node) or ()
    np.testing.assert_allclose(layer.run(x.astype(np.float64)).swapaxes(0, 1), expected, atol=1e-6)
    parameters = {role: parameter.numpy() for role, parameter in node.parameters.items()}
    simpler = lower(Operation(op, ("x",), node.attributes, parameters), [x.shape], channels_last=False)
    assert simpler is not None
    np.testing.assert_allclose(grafted(simpler, tmp_path, x), expected, atol=1e-6)


def grafted(operations: tuple[Operation, ...], folder: Path, x: Array) -> Array:
    """What operations give, in ONNX Runtime; their inputs are positions, of `x` first."""
    sizes = ", ".join(map(str, x.shape))
    text = f"small (float[{sizes}] x) => (float[{sizes}] y) {{ y = Identity (x) }}"
    editor = OnnxEditor(model_of("onnx", written(folder / "model.onnx", text, {}, 20)))
    read = [tuple("x" if place == 0 else int(place) - 1 for place in item.inputs) for item in operations]
    made = [Operation(item.operator, inputs, item.attributes, item.parameters)
            for item, inputs in zip(operations, read, strict=True)]  # fmt: skip
    editor.graft("x", made, "new")
    return next(iter(OnnxRunnable(editor.save(folder / "out", "changed")).run({"x": x}).values()))


def test_many_steps_are_not_written_one_by_one() -> None:
    weights = {"W": drawn(1, WIDTH, WIDTH), "R": drawn(1, WIDTH, WIDTH)}
    operation = Operation("RNN", ("x",), {"batch_first": True}, weights)
    assert lower(operation, [(BATCH, 65, WIDTH)], channels_last=False) is None

"""What a format calls an operator is read as that operator, for all of the tables that are read in both directions.

Each operator is written behind a small network's input, and the file is read again. What's known not to come back is
in `gaps/names_*.txt`, a file for each format that has any; a line that is true of no operator any more has to go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from one_graph import known_gaps
from small_models import export_pt2, model_of

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import Operation
from conrepair.formats.models.model import Model
from conrepair.ground.graph.layer_graph import Node
from conrepair.ground.graph.operators import FUNCTIONS, OPERATORS

_SHAPE = (2, 4, 4, 6)
_LAST = {"keras", "tensorflow", "tflite"}  # formats whose channels are the last axis
_TRUTHS = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}
_OF_TRUTHS = {"And", "Or", "Xor", "Not"}
_FLOAT = {"to": "float32"}
_SAID: Mapping[str, Mapping[str, Any]] = {
    **{name: {"axis": 3} for name in ("Softmax", "LogSoftmax", "Stack", "Concat")},
    **{name: {"axes": (2,), "keepdims": True} for name in OPERATORS if name.startswith("Reduce")},
    "Cast": {"to": "int32"},
    "LeakyRelu": {"alpha": 0.25},
    "Gelu": {"approximate": "none"},
}
_WINDOW = {"kernel_shape": (1, 1), "strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1)}


def _steps(operator: str, *, last: bool) -> list[Operation]:
    """An operator behind `x`, and what's around it so that it reads and gives real numbers."""
    attributes: Mapping[str, Any] = _SAID.get(operator, {})
    parameters: dict[str, Any] = {}
    if "operand" in OPERATORS[operator].parameters and operator != "Concat":
        parameters["operand"] = np.array([True] if operator in _OF_TRUTHS else [0.5])
    if operator.endswith("Pool"):
        attributes = {**_WINDOW, "ceil_mode": False}
    if operator == "Gather":
        parameters["indices"] = np.arange(6)
        attributes = {"axis": 3}
    if operator in _OF_TRUTHS:
        truth = Operation("Greater", ("x",), {}, {"operand": np.array([0.5], np.float32)})
        return [truth, Operation(operator, (0,), {}, parameters), Operation("Cast", (1,), _FLOAT)]
    made = Operation(operator, ("x", "x") if operator in {"Stack", "Concat"} else ("x",), attributes,
                     {role: array.astype(np.float32) if array.dtype.kind == "f" else array
                      for role, array in parameters.items()}, last)  # fmt: skip
    if operator == "Stack":
        return [made, Operation("ReduceMax", (0,), {"axes": (3,), "keepdims": False})]
    return [made, Operation("Cast", (0,), _FLOAT)] if operator in {*_TRUTHS, "Cast"} else [made]


def _keras_network() -> tuple[Any, Any]:
    import keras

    given = keras.Input(batch_shape=_SHAPE, name="x")
    return given, keras.layers.ReLU(name="first")(given)


def _tensorflow_file(folder: Path) -> Model:
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        tf.nn.relu(tf.compat.v1.placeholder(tf.float32, _SHAPE, "x"), "first")
    (folder / "small.pb").write_bytes(graph.as_graph_def().SerializeToString())
    return model_of("tensorflow", folder / "small.pb")


def _tflite_file(folder: Path) -> Model:
    import keras
    import tensorflow as tf

    network = keras.Model(*_keras_network())
    (folder / "small.tflite").write_bytes(tf.lite.TFLiteConverter.from_keras_model(network).convert())
    return model_of("tflite", folder / "small.tflite")


def _torch_file(folder: Path) -> Model:
    import torch

    export_pt2(torch.nn.ReLU(), [torch.zeros(_SHAPE)], folder / "small.pt2")
    return model_of("torch", folder / "small.pt2")


def _onnx_file(folder: Path) -> Model:
    import onnx

    text = """<ir_version: 10, opset_import: ["" : 22]>
    g (float[2, 4, 4, 6] x) => (float[2, 4, 4, 6] first) { first = Relu (x) }"""
    onnx.save(onnx.parser.parse_model(text), folder / "small.onnx")
    return model_of("onnx", folder / "small.onnx")


def _edited(make: Callable[[Path], Model], names: Iterator[str], folder: Path) -> tuple[set[str], list[Node]]:
    """Put each operator in place of the only result; those that are refused, and the file's nodes."""
    editor, refused = open_editor(make(folder)), set[str]()
    (result,) = editor.graph.outputs
    for name in names:
        steps = _steps(name, last=make in (_tensorflow_file, _tflite_file))
        read = [Operation(step.operator, tuple(result if item == "x" else item for item in step.inputs),
                          step.attributes, step.parameters, step.channels_last) for step in steps]  # fmt: skip
        try:
            editor.graft(result, read, name.lower())
        except NotEditableError:
            refused.add(name)
    return refused, list(open_editor(editor.save(folder / "out", "changed")).graph.nodes)


def _keras(names: Iterator[str], folder: Path) -> tuple[set[str], list[Node]]:
    import keras

    from conrepair.formats.keras.edit.graft import KerasWriter

    given, result = _keras_network()
    refused = set[str]()
    for name in names:
        known = {"x": result}
        try:
            result = KerasWriter(name.lower()).compute(_steps(name, last=True), known.__getitem__)
        except NotEditableError:
            refused.add(name)
    keras.Model(given, result).save(folder / "small.keras")
    return refused, list(open_editor(model_of("keras", folder / "small.keras")).graph.nodes)


def _tables(format_: str) -> Mapping[str, str]:
    """What a format calls operators of the vocabulary."""
    match format_:
        case "keras":
            from conrepair.formats.keras.read.ops import NAMES

            return NAMES
        case "tensorflow":
            from conrepair.formats.networks import parts
            from conrepair.formats.tensorflow.read import operators as tensorflow_operators

            reductions = {op: name for name, op in parts.REDUCTIONS.items()}
            return {**tensorflow_operators.NAMES, **reductions}
        case "tflite":
            from conrepair.formats.tflite.read import operators as tflite_operators

            return tflite_operators.NAMES
        case "torch":
            from conrepair.formats.torch.read.elementwise import BINARY, REDUCTIONS, SETTINGS, UNARY

            found = {op: name for name, op in reversed({**UNARY, **BINARY, **REDUCTIONS}.items())}
            return {**found, **{op: name for name, (op, _) in SETTINGS.items()}}
    return {name: name for name in FUNCTIONS}


def _problems(format_: str, folder: Path) -> Iterator[str]:
    makers = {"tensorflow": _tensorflow_file, "tflite": _tflite_file, "torch": _torch_file, "onnx": _onnx_file}
    table = {op: name for op, name in _tables(format_).items() if op != "Identity"}
    names = iter(table)
    refused, nodes = _keras(names, folder) if format_ == "keras" else _edited(makers[format_], names, folder)
    yield from (f"{name}: refused" for name in refused)
    for name in table.keys() - refused:
        wanted = next(step for step in _steps(name, last=format_ in _LAST) if step.operator == name)
        found = [node for node in nodes if node.op == name]
        said = [
            node
            for node in found
            if all(node.attributes.get(key) == value for key, value in wanted.attributes.items())
        ]
        if not found:
            yield f"{name}: another operator"
        elif not said:
            yield f"{name}: other attributes"
        elif format_ in {"tensorflow", "tflite"} and table[name] not in {node.native for node in said}:
            yield f"{name}: another name"


@pytest.mark.parametrize("format_", ["onnx", "keras", "tensorflow", "tflite", "torch"])
def test_what_is_written_is_read_again(format_: str, tmp_path: Path) -> None:
    gaps = Path(__file__).parent / "gaps" / f"names_{format_}.txt"
    assert set(_problems(format_, tmp_path)) == (known_gaps(gaps) if gaps.exists() else set())

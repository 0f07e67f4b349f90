"""Each operator in each format: its editor writes it, its reader finds it, and it computes what its record says."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import network_checks as checks
import numpy as np
import pytest
import small_models as small
from node_functions import vocabulary_errors
from onnx_networks import written
from operation_cases import CASES, FEEDS, SHAPE, each, value_of

from conrepair.diagnosis.localization.run.opening import open_model
from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import Operation
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.models.runnable import Runnable
from conrepair.formats.networks.network import Network
from conrepair.ground.graph.layer_graph import Array, Node
from conrepair.ground.graph.operators import family


def onnx_file(folder: Path, opset: int) -> Model:
    sizes = ", ".join(map(str, SHAPE))
    text = f"small (float[{sizes}] x, float[{sizes}] z) => (float[{sizes}] y) {{ y = Add (x, z) }}"
    return small.model_of("onnx", written(folder / "base.onnx", text, {}, opset))


def tflite_file(folder: Path) -> Model:
    from tflite_files import Writer

    writer = Writer()
    x, z, y = (writer.tensor(name, SHAPE) for name in "xzy")
    writer.operator("MAXIMUM", [x, z], [y])
    return writer.write(folder / "base.tflite", [x, z], [y])


def torch_file(folder: Path) -> Model:
    import torch

    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
            return x + z

    feeds = [torch.from_numpy(array) for array in FEEDS.values()]
    return small.model_of("torch", small.export_pt2(Sum(), feeds, folder / "base.pt2", dynamic=False))


def keras_file(folder: Path, outputs: Sequence[str]) -> Model:
    import keras

    x, z = (keras.Input(batch_shape=SHAPE, name=name) for name in FEEDS)
    add = keras.layers.Add(name="y")([x, z])
    places = [keras.layers.Activation("relu", name=name)(add) for name in outputs]
    keras.Model([x, z], places).save(folder / "base.keras")
    return small.model_of("keras", folder / "base.keras")


def tensorflow_file(folder: Path, outputs: Sequence[str]) -> Model:
    import tensorflow as tf

    class Sum(tf.Module):
        @tf.function(autograph=False, input_signature=[tf.TensorSpec(SHAPE, tf.float32, name=name) for name in FEEDS])
        def __call__(self, x: Any, z: Any) -> Any:
            return {name: tf.nn.relu(x + z, name=name) for name in outputs}

    return small.model_of("tensorflow", small.save_tensorflow(Sum(), folder / "base"))


FORMATS: Mapping[str, Callable[..., Model]] = {
    "onnx": lambda folder: onnx_file(folder, 20),
    "onnx of an old opset": lambda folder: onnx_file(folder, 13),
    "tflite": tflite_file,
    "torch": torch_file,
    "keras": keras_file,
    "tensorflow": tensorflow_file,
}
_IN_PLACE = {"keras", "tensorflow"}  # whose editors compute no new output: an operator is put in front of one
_REDUCED = frozenset({"ReduceL2", "ReduceSumSquare"})
_MOVED = frozenset({"DepthToSpace", "SpaceToDepth", "LpNormalization", "LRN"})
_NOWHERE = frozenset({"RMSNormalization", "MatMul of two"})
_LARGEST = frozenset({"ArgMax", "ArgMin", "CumSum"})
_LACKS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("onnx", "onnx of an old opset"), _NOWHERE | {"Expm1", "Log1p"}),
    "tflite": _REDUCED | _MOVED | _LARGEST | (_NOWHERE - {"MatMul of two"}) | {
        *("Expm1", "Log1p", "Tan", "Sinh", "Cosh", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh", "Celu"),
        *("ThresholdedRelu", "GroupNormalization", "MaxPool beyond the edge", "Conv in groups", "ConvTranspose"),
        *("Tile", "Expand", "Pad of edges"),
    },
    "torch": _REDUCED | _MOVED | _LARGEST | _NOWHERE | {
        *("ThresholdedRelu", "ReduceProd", "ConvTranspose", "Cast", "Slice", "Tile", "Expand"),
    },
    "keras": _REDUCED | _MOVED | _LARGEST | _NOWHERE | {
        *("Celu", "ThresholdedRelu", "MaxPool beyond the edge", "ConvTranspose", "Concat with a constant", "Tile"),
        *("Expand", "Pad of edges"),
    },
    "tensorflow": _REDUCED | {"LpNormalization"} | (_NOWHERE - {"MatMul of two"}) | {
        *("Celu", "ThresholdedRelu", "GroupNormalization", "MaxPool beyond the edge", "Expand", "Pad of edges"),
    },
}  # fmt: skip
"""What isn't written to a format."""

_CLOSE = 1e-5


def operators_file(kind: str, operations: Sequence[Operation], folder: Path) -> tuple[Model, list[int]]:
    """A file of operations, and the places of their outputs."""
    for name in ("base", "out"):
        (folder / name).mkdir(parents=True)
    names = [f"o{place}" for place in range(len(operations))]
    if kind not in _IN_PLACE:
        editor = open_editor(FORMATS[kind](folder / "base"))
        for name, operation in zip(names, operations, strict=True):
            editor.add_output(name, [operation])
        return editor.save(folder / "out", "written"), [*range(1, len(names) + 1)]
    editor = open_editor(FORMATS[kind](folder / "base", names))
    reads = dict(zip(FEEDS, editor.graph.inputs, strict=True))
    for name, place, operation in zip(names, editor.graph.outputs, operations, strict=True):
        own = replace(operation, inputs=tuple(reads.get(str(item), item) for item in operation.inputs))
        editor.graft(place, [own], f"new_{name}")
    return editor.save(folder / "out", "written"), [*range(len(names))]


def opened(model: Model, folder: Path) -> Network:
    inputs = [replace(spec, shape=SHAPE) for spec in framework(model.framework).load(model).inputs]
    folder.mkdir()
    return open_model(model, inputs, folder).network


def own_nodes(network: Network, places: Sequence[int]) -> list[list[Node]]:
    """By output, the nodes that compute it."""
    graph = network.graph
    made = [graph.between(graph.inputs, [graph.outputs[place]]) for place in places]
    return [[node for node in nodes if node.op != "Identity"] for nodes in made]


def check_network(network: Network, runnable: Runnable) -> dict[str, Array]:
    """It's run whole, in pieces, and in the other arithmetic; its nodes say what they compute."""
    feeds = dict(zip((spec.name for spec in runnable.inputs), FEEDS.values(), strict=True))
    checks.check_outputs(network, runnable, feeds)
    checks.check_cuts(network, feeds)
    checks.check_vocabulary(network)
    with np.errstate(all="ignore"):
        checks.check_functions(network, feeds, _CLOSE)
    return dict(runnable.run(feeds))


def check_operations(
    model: Model, operations: Mapping[str, Operation], places: Sequence[int], folder: Path
) -> dict[str, Node]:
    """Each computes what its record says, and is read as it was written; the nodes of those that are one."""
    network = opened(model, folder)
    values = list(check_network(network, framework(model.framework).load(model)).values())
    alone = {}
    for (name, operation), place, nodes in zip(operations.items(), places, own_nodes(network, places), strict=True):
        assert checks.distance(value_of(operation), values[place]) <= _CLOSE, name
        if len(nodes) != 1 or nodes[0].op in CASES[name].found:
            continue
        alone[name] = nodes[0]
        assert nodes[0].op == operation.operator
        for attribute, value in {**operation.attributes, **CASES[name].said}.items():
            found = nodes[0].attributes[attribute]
            near = model.framework != "onnx" and isinstance(
                value, float
            )  # ONNX's reader gives the digits that were meant
            assert found == (pytest.approx(value) if near else value), (name, attribute)
        for role, array in operation.parameters.items():
            np.testing.assert_allclose(nodes[0].parameters[role].numpy(), array, rtol=1e-6)
    return alone


@pytest.mark.parametrize("kind", FORMATS)
def test_an_operator_that_is_written_is_its_record(kind: str, tmp_path: Path) -> None:
    count = itertools.count()

    def check(names: Sequence[str]) -> None:
        folder = tmp_path / str(next(count))
        operations = {name: CASES[name].operation for name in names}
        model, places = operators_file(kind, list(operations.values()), folder)
        check_operations(model, operations, places, folder / "opened")

    each((name for name in CASES if name not in _LACKS[kind]), check)


_FIXED: Mapping[str, frozenset[str]] = {
    "onnx": frozenset(),
    "onnx of an old opset": frozenset(),
    "tflite": frozenset({
        *("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "Softmax", "LogSoftmax", "Reshape"),
        *("Concat", "Slice", "Slice forwards", "Pad with a number", "Gather"),
    }),
}  # fmt: skip
"""Attributes that an editor doesn't change, though it writes the operator."""


@pytest.mark.parametrize("kind", _FIXED)
def test_an_attribute_that_is_changed_is_what_the_record_says_then(kind: str, tmp_path: Path) -> None:
    count = itertools.count()

    def check(names: Sequence[str]) -> None:
        folder = tmp_path / str(next(count))
        model, places = operators_file(kind, [CASES[name].operation for name in names], folder)
        before = framework(model.framework).load(model)
        feeds = dict(zip((spec.name for spec in before.inputs), FEEDS.values(), strict=True))
        editor = open_editor(model)
        nodes = [editor.graph.producers[editor.graph.outputs[place]] for place in places]
        changed = {name: CASES[name].operation for name in names}
        for name, node in zip(names, nodes, strict=True):
            if node.op != changed[name].operator:
                continue  # it's written in simpler ones
            if name in _FIXED[kind]:
                with pytest.raises(NotEditableError):
                    editor.set_attributes(node, CASES[name].changes)
            else:
                editor.set_attributes(node, CASES[name].changes)
                changed[name] = CASES[name].changed
        check_operations(editor.save(folder / "out", "changed"), changed, places, folder / "opened")
        for name, node in zip(names, nodes, strict=True):
            if changed[name] is not CASES[name].operation:
                editor.set_attributes(node, {key: node.attributes[key] for key in CASES[name].changes})
        after = framework(model.framework).load(editor.save(folder / "out", "back"))
        for one, two in zip(before.run(feeds).values(), after.run(feeds).values(), strict=True):
            np.testing.assert_array_equal(one, two)

    each((name for name, case in CASES.items() if case.changes and name not in _LACKS[kind]), check)


@pytest.mark.parametrize("kind", ["onnx", "onnx of an old opset"])
def test_a_function_becomes_another(kind: str, tmp_path: Path) -> None:
    count = itertools.count()

    def check(names: Sequence[str]) -> None:
        folder = tmp_path / str(next(count))
        model, places = operators_file(kind, [Operation("Relu", ("x",))] * len(names), folder)
        editor = open_editor(model)
        for name, place in zip(names, places, strict=True):
            node = editor.graph.producers[editor.graph.outputs[place]]
            editor.set_operator(node, CASES[name].operation.operator, CASES[name].operation.attributes)
        operations = {name: CASES[name].operation for name in names}
        check_operations(editor.save(folder / "out", "changed"), operations, places, folder / "opened")

    functions = (name for name, case in CASES.items() if case.operation.operator in family("function"))
    each((name for name in functions if not {name} & _LACKS[kind] and not CASES[name].operation.parameters), check)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_a_format_lacks_is_refused(kind: str, tmp_path: Path) -> None:
    for name in sorted(_LACKS[kind]):
        with pytest.raises(NotEditableError):
            operators_file(kind, [CASES[name].operation], tmp_path / name)


def test_an_operator_that_tensorflow_converts_is_what_tensorflow_computes(tmp_path: Path) -> None:
    import tensorflow as tf
    import tflite_networks as networks
    from tflite_opened import Opened, computed_nodes

    count = itertools.count()

    def check(names: Sequence[str]) -> None:
        cases = [networks.CASES[name] for name in names]

        def every(*tensors: Any) -> Any:
            rest = iter(tensors)
            return {
                f"o{place:03}": case.function(*itertools.islice(rest, len(case.shapes)))
                for place, case in enumerate(cases)
            }

        shapes = [shape for case in cases for shape in case.shapes]
        dtypes = [dtype for case in cases for dtype in case.dtypes or ["float32"] * len(case.shapes)]
        whole = networks.TensorFlowCase(every, shapes, "", dtypes)
        one = Opened(whole.convert(tmp_path / f"{next(count)}.tflite"))
        checks.check_outputs(one.network, framework("tflite").load(one.model), one.feeds)
        checks.check_cuts(one.network, one.feeds)
        assert [error for node in one.network.graph.nodes for error in vocabulary_errors(node)] == []
        assert computed_nodes(one, 2e-5)
        expected = tf.function(every, autograph=False)(*one.feeds.values())
        graph, outputs = one.network.graph, one.network.output_names
        for name, case, (key, array) in zip(names, cases, sorted(expected.items()), strict=True):
            assert checks.distance(array.numpy(), one.captured[outputs[key]]) <= _CLOSE, name
            assert case.op in {node.op for node in graph.between(graph.inputs, [outputs[key]])}, name

    each(networks.CASES, check)

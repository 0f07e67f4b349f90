"""Operators that are put in compute what they say: each one's own recomputation changes nothing, in any format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from crossed import slower
from onnx_networks import branching, specs
from rewritten_networks import WRITERS
from rewritten_networks import feeds_of as onnx_feeds_of
from small_models import model_of

from conrepair.diagnosis.localization.run.opening import open_model
from conrepair.formats.editing.editor import Editor, NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import Operation, operation_of
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.graph.layer_graph import Array, Node
from tests.support.native_models import feeds_of, keras_file, tensorflow_file, tflite_file, torch_file

_CLOSE = {"rtol": 1e-4, "atol": 2e-5}
_FILES = {"keras": keras_file, "tflite": tflite_file, "torch": torch_file, "tensorflow": tensorflow_file}
_LEFT: Mapping[str, frozenset[str]] = {  # that can't be put in yet
    "onnx": frozenset({"LSTM", "GRU", "RNN", "Split", "Einsum", "GroupNormalization", "If"}),
    "torch": frozenset({"LSTM", "GRU", "Resize"}),
    "keras": frozenset({"LSTM", "GRU", "Resize", "Rescaling"}),
    "tensorflow": frozenset({"Split", "Unpack"}),  # of several results
    # Sub and Square are parts of one SQUARED_DIFFERENCE.
    "tflite": frozenset({"Split", "UNPACK", "Resize", "Where", "SpaceToBatch", "BatchToSpace", "Sub", "Square"}),
}


def answers(model: Model, feeds: Mapping[str, Array]) -> list[Array]:
    """Fed in the order of the inputs: saving may rename them."""
    runnable = framework(model.framework).load(model)
    arrays = dict(zip((spec.name for spec in runnable.inputs), feeds.values(), strict=True))
    return list(runnable.run(arrays).values())


def assert_same(model: Model, other: Model, feeds: Mapping[str, Array]) -> None:
    for one, two in zip(answers(model, feeds), answers(other, feeds), strict=True):
        np.testing.assert_allclose(one, two, **_CLOSE)


def own(node: Node) -> Operation:
    """What a node computes, whatever the batch."""
    made = operation_of(node)
    shape = made.attributes.get("shape")
    if node.op != "Reshape" or not isinstance(shape, tuple):
        return made
    return replace(made, attributes={"shape": (-1, *(int(size) for size in shape[1:]))})


def recomputed(model: Model, nodes: list[Node], feeds: Mapping[str, Array], folder: Path) -> set[str]:
    """Put each node's own computation in its place; the operators that are refused."""
    refused, done = set[str](), set[str]()
    for place, node in enumerate(nodes):
        editor = open_editor(model)
        try:
            editor.graft(node.outputs[0], [own(node)], "again")
            changed = editor.save(folder / f"out-{place}", "changed")
        except NotEditableError:
            refused.add(node.op)
        else:
            done.add(node.op)
            assert_same(model, changed, feeds)
    assert done
    return refused


@pytest.mark.parametrize("name", ["image", "order", "text", "pair"])
@pytest.mark.parametrize("kind", _FILES)
@pytest.mark.slow
def test_what_a_layer_computes_can_be_put_in_its_place(kind: str, name: str, tmp_path: Path) -> None:
    model = _FILES[kind](name, tmp_path)
    given = feeds_of(name, channels_last=kind != "torch")
    runnable = framework(kind).load(model)
    feeds = dict(zip((spec.name for spec in runnable.inputs), given.values(), strict=True))
    sizes = [replace(spec, shape=(2, *spec.shape[1:])) for spec in runnable.inputs]
    (tmp_path / "opened").mkdir()
    nodes = list(open_model(model, sizes, tmp_path / "opened").network.graph.nodes)
    known = open_editor(model).graph.tensors
    nodes = [node for node in nodes if {*filter(None, node.inputs), *node.outputs} <= set(known)]
    if kind == "tensorflow":  # one of each operator: writing a SavedModel takes a second
        nodes = list({(node.op, node.native, len(node.parameters)): node for node in nodes}.values())
    assert recomputed(model, nodes, feeds, tmp_path) <= _LEFT[kind]


@pytest.mark.parametrize(
    "name", [*(name for name in WRITERS if name != "encoder blocks"), "branching", *slower("encoder blocks")]
)
def test_what_a_node_computes_can_be_put_in_its_place(name: str, tmp_path: Path) -> None:
    if name in {"function", "lstm"}:
        pytest.skip("its nodes are inside a function, or give several results")
    write = {**WRITERS, "branching": branching}[name]
    model = model_of("onnx", write(tmp_path / f"{name}.onnx"))
    feeds = onnx_feeds_of(name)
    model = replace(model, inputs=tuple(specs(model, feeds)))
    graph = open_editor(model).graph
    nodes = [node for node in graph.nodes if graph.tensors[node.outputs[0]].observable]
    nodes = [node for node in nodes if all(graph.tensors[item].observable for item in node.inputs if item)]
    assert recomputed(model, nodes, feeds, tmp_path) <= _LEFT["onnx"]


def test_a_number_gathers_without_an_axis_in_a_tflite_file(tmp_path: Path) -> None:
    model, given = tflite_file("pair", tmp_path), feeds_of("pair")
    editor = open_editor(model)
    taken = Operation("Gather", (editor.graph.outputs[0],), {"axis": 1}, {"indices": np.array(2)})
    editor.graft(editor.graph.outputs[0], [taken], "taken")
    both = zip(answers(model, given), answers(editor.save(tmp_path / "out", "taken"), given), strict=True)
    ((right, column),) = [(one, two) for one, two in both if one.shape != two.shape]
    np.testing.assert_array_equal(column, right[:, 2])


def node_of(editor: Editor, name: str) -> Node:
    return next(node for node in editor.graph.nodes if node.name == name or node.layer == name)


def shortcut(editor: Editor) -> Node:
    """The residual addition of the pictures' network."""
    joins = (node for node in editor.graph.nodes if node.op == "Add" and len(dict.fromkeys(node.inputs)) > 1)
    return next(joins)


@pytest.mark.parametrize("kind", _FILES)
def test_a_branch_that_was_lost_can_be_joined_again(kind: str, tmp_path: Path) -> None:
    model = _FILES[kind]("image", tmp_path)
    given = feeds_of("image", channels_last=kind != "torch")
    editor = open_editor(model)
    node = shortcut(editor)
    if node.outputs[0] not in node.inputs and kind == "tflite":
        editor.set_operator(node_of(editor, node.layer), "Sub", {})  # a removal would lose what is fused behind it
    else:
        editor.remove(node)
    broken = editor.save(tmp_path / "out", "broken")
    with pytest.raises(AssertionError):
        assert_same(model, broken, given)
    again = open_editor(broken)
    kept, other = node.inputs[0], node.inputs[1]
    if kind == "tflite":
        again.graft(node.outputs[0], [Operation("Add", (kept, other))], "joined")
    else:
        reader = [item for item in again.graph.nodes if kept in item.inputs and item.op == "Concat"]
        again.graft(kept, [Operation("Add", (kept, other))], "joined", reader)
    assert_same(model, again.save(tmp_path / "out", "mended"), given)


@pytest.mark.parametrize("kind", [*_FILES, "onnx"])
def test_what_is_computed_from_a_reader_is_refused(kind: str, tmp_path: Path) -> None:
    if kind == "onnx":
        model = model_of("onnx", branching(tmp_path / "branching.onnx"))
    else:
        model = _FILES[kind]("pair", tmp_path)
    editor = open_editor(model)
    node = next(item for item in editor.graph.nodes if any(name in editor.graph.producers for name in item.inputs))
    tensor = next(name for name in node.inputs if name in editor.graph.producers)

    def put_in() -> None:
        editor.graft(tensor, [Operation("Add", (tensor, node.outputs[0]))], "circle")
        editor.save(tmp_path / "out", "circle")

    with pytest.raises(NotEditableError, match=r"computed from|part of what"):
        put_in()


def test_a_tflite_file_loses_the_content_of_what_nothing_reads_any_more(tmp_path: Path) -> None:
    model = tflite_file("image", tmp_path)
    editor = open_editor(model)
    node = max(
        (node for node in editor.graph.nodes if node.op == "MatMul" and "weight" in node.parameters),
        key=lambda node: node.parameters["weight"].numpy().size,
    )
    (read,), (written,) = node.inputs, node.outputs
    weight = node.parameters["weight"].numpy()
    parameters = {role: parameter.numpy() for role, parameter in node.parameters.items()}
    editor.graft(written, [Operation("MatMul", (read,), {}, {**parameters, "weight": 2 * weight})], "anew")
    changed = editor.save(tmp_path, "changed")
    content = Path(changed.path).read_bytes()
    kept = [array for array in (weight, weight.T) if np.ascontiguousarray(array).tobytes() in content]
    assert not kept
    doubled = [array for array in (2 * weight, 2 * weight.T) if np.ascontiguousarray(array).tobytes() in content]
    assert len(doubled) == 1
    assert len(content) < Path(model.path).stat().st_size + weight.nbytes
    framework("tflite").load(changed).run({"image": feeds_of("image", channels_last=True)["image"]})

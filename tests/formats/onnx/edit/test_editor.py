"""What an editor of ONNX files promises: what's set is what the file says then, and nothing else changes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_networks import branching, specs
from operation_cases import each
from rewritten_networks import WRITERS, feeds_of
from small_models import model_of

from benchmarks.faults.steps import insert
from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.edit.editor import OnnxEditor
from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.ground.graph.layer_graph import Array, Attribute, Node
from conrepair.ground.graph.operators import COMMUTATIVE

_ALL = {**WRITERS, "branching": branching}
NAMES = pytest.mark.parametrize("name", _ALL)
NAMES_OF_A_FILE_A_PLACE = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "encoder blocks")) for name in _ALL]
)
"""For tests that write and run a file for each node or tensor."""


def written(name: str, folder: Path) -> Model:
    """A file, with the sizes of its feeds declared."""
    model = model_of("onnx", _ALL[name](folder / f"{name}.onnx"))
    return replace(model, inputs=tuple(specs(model, feeds_of(name))))


def editor_of(model: Model) -> OnnxEditor:
    editor = open_editor(model)
    assert isinstance(editor, OnnxEditor)
    return editor


def run(model: Model, name: str) -> list[Array]:
    return list(OnnxRunnable(model).run(feeds_of(name)).values())


def assert_same(model: Model, other: Model, name: str) -> None:
    for one, two in zip(run(model, name), run(other, name), strict=True):
        np.testing.assert_array_equal(one, two)


def by_name(editor: OnnxEditor) -> Mapping[str, Node]:
    return {node.name: node for node in editor.graph.nodes}


def other_numbers(array: Array) -> Array:
    """Different ones that fit wherever the old ones did: each row backwards."""
    if array.ndim and not np.array_equal(np.flip(array, -1), array):
        return np.flip(array, -1)
    return array * array.dtype.type(0.5) if np.issubdtype(array.dtype, np.floating) else array


@NAMES
def test_own_numbers_and_attributes_change_nothing(name: str, tmp_path: Path) -> None:
    model = written(name, tmp_path)
    before, editor = Path(model.path).read_bytes(), editor_of(model)
    for node in editor.graph.nodes:
        for role, parameter in node.parameters.items():
            editor.set_parameter(node, role, parameter.numpy())
        editor.set_attributes(node, node.attributes)
        editor.set_attributes(node, node.written)
    assert_same(model, editor.save(tmp_path / "out", "same"), name)
    assert Path(model.path).read_bytes() == before


_REFUSED = {
    "function": [("call/node", "weight")],  # inside the function
    "branching": [("chosen", "weight of MatMul 0 in the then branch")],  # inside the branch
    "split": [("e", "operand")],  # two constants of the file in one
}


@NAMES
def test_other_numbers_are_what_the_file_says_then(name: str, tmp_path: Path) -> None:
    model = written(name, tmp_path)
    wanted: dict[tuple[str, str], Array] = {}
    refused = []
    editor = editor_of(model)
    for node in editor.graph.nodes:
        for role, parameter in node.parameters.items():
            array = other_numbers(parameter.numpy())
            try:
                editor.set_parameter(node, role, array)
            except NotEditableError:
                refused.append((node.name, role))
            else:
                wanted[node.name, role] = array
    assert refused == _REFUSED.get(name, [])
    changed = editor.save(tmp_path / "out", "changed")
    nodes = by_name(editor_of(changed))
    for (node_name, role), array in wanted.items():
        np.testing.assert_array_equal(nodes[node_name].parameters[role].numpy(), array)
    for node in editor.graph.nodes:
        for role, parameter in node.parameters.items():
            if (node.name, role) in wanted:
                editor.set_parameter(node, role, parameter.numpy())
    assert_same(model, editor.save(tmp_path / "out", "back"), name)


_OTHER: dict[str, Any] = {
    "strides": lambda value, node: (1,) * len(value) if set(value) != {1} else (2,) * len(value),
    "pads": lambda value, node: tuple(size + 1 for size in value) if node.op != "Pad" else value,
    "alpha": lambda value, node: 0.25,
    "beta": lambda value, node: 4.0,
    "keepdims": lambda value, node: not value,
    "linear_before_reset": lambda value, node: not value,
    "constant_first": lambda value, node: not value,
    "axis": lambda value, node: value - 1 if value else 1,
    "axes": lambda value, node: value[1:] if len(value) > 1 else None,
    "sizes": lambda value, node: (value[0] - 1, *value[1:-1], value[-1] + 1),
}


_SIZING = {"strides", "pads", "keepdims", "axes", "sizes"}


def _other_values(editor: OnnxEditor) -> list[tuple[str, str, Attribute]]:
    found = []
    for node in editor.graph.nodes:
        for attribute, value in node.attributes.items():
            other = _OTHER[attribute](value, node) if attribute in _OTHER and value is not None else None
            meaningless = attribute == "constant_first" and (node.op in COMMUTATIVE or not node.parameters)
            if other is not None and other != value and not meaningless:
                found.append((node.name, attribute, other))
    return found


@pytest.mark.parametrize("name", ["gru", "residual", "split"])  # of what else, `tests/formats/test_operator_law.py`
def test_other_attributes_are_what_the_file_says_then(name: str, tmp_path: Path) -> None:
    model = written(name, tmp_path)
    said = 0
    for node_name, attribute, value in _other_values(editor_of(model)):
        editor = editor_of(model)
        node = by_name(editor)[node_name]
        try:
            editor.set_attributes(node, {attribute: value})
            changed = editor.save(tmp_path / "out", "changed")
        except NotEditableError:
            assert attribute in _SIZING or attribute == "axis"  # what's behind doesn't fit then
        else:
            again = by_name(editor_of(changed))[node_name]
            assert again.attributes[attribute] == value, (node_name, attribute)
            said += 1
        editor.set_attributes(node, {attribute: node.attributes[attribute]})
        back = editor.save(tmp_path / "out", "back")
        if node.native.startswith("Global"):  # which is a reduction now, and rounds otherwise
            for one, two in zip(run(model, name), run(back, name), strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-5)
        else:
            assert_same(model, back, name)
    assert said


@NAMES
def test_inserted_nodes_are_there_and_removed_again_they_are_not(name: str, tmp_path: Path) -> None:
    model, count = written(name, tmp_path), itertools.count()

    def check(tensors: Sequence[str]) -> None:
        editor, done = editor_of(model), 0
        for tensor in tensors:
            try:
                insert(editor, tensor, [("Mul", {}, [np.float32(2)]), ("Relu", {}, [])], "new")
            except NotEditableError:
                assert not editor.graph.tensors[tensor].observable or name == "function"
            else:
                done += 1
        changed = editor.save(tmp_path / f"out-{next(count)}", "changed")
        assert [spec.name for spec in OnnxRunnable(changed).outputs] == list(editor.graph.outputs)
        again = editor_of(changed)
        new = [node for node in again.graph.nodes if "/new/" in node.name]
        assert sorted(node.op for node in new) == ["Mul"] * done + ["Relu"] * done
        for node in new:
            again.remove(node)
        assert_same(model, again.save(tmp_path / f"back-{next(count)}", "back"), name)

    each((item for item, tensor in editor_of(model).graph.tensors.items() if tensor.dtype == "float32"), check)


@NAMES
def test_exchanged_twice_is_as_before(name: str, tmp_path: Path) -> None:
    model = written(name, tmp_path)
    editor = editor_of(model)
    for node in editor.graph.nodes:
        places = [place for place, item in enumerate(node.inputs) if item]
        if len(places) > 1:
            for _ in range(2):
                try:
                    editor.swap_inputs(node, places[0], places[1])
                except NotEditableError:
                    assert name in {"function", "branching"}
    if len(editor.graph.outputs) > 1:
        for _ in range(2):
            editor.exchange_outputs(0, 1)
    if len(editor.graph.inputs) > 1:
        for _ in range(2):
            editor.exchange_inputs(0, 1)
    assert_same(model, editor.save(tmp_path / "out", "back"), name)


def test_exchanged_outputs_keep_their_names(tmp_path: Path) -> None:
    for name in ("pair", "lstm"):
        model = written(name, tmp_path)
        editor = editor_of(model)
        editor.exchange_outputs(0, 1)
        changed = editor.save(tmp_path / "out", "changed")
        assert [spec.name for spec in OnnxRunnable(changed).outputs] == list(editor.graph.outputs)
        for one, two in zip(run(model, name), reversed(run(changed, name)), strict=True):
            np.testing.assert_array_equal(one, two)


@NAMES_OF_A_FILE_A_PLACE
def test_every_node_can_be_taken_out_or_says_why_not(name: str, tmp_path: Path) -> None:
    model = written(name, tmp_path)
    done = 0
    for node in editor_of(model).graph.nodes:
        editor = editor_of(model)
        try:
            editor.remove(node)
            changed = editor.save(tmp_path / "out", "changed")
        except NotEditableError:
            continue
        done += 1
        onnx.checker.check_model(changed.path, full_check=True)
        assert (
            node.native == "Identity"
            or node.outputs[0] in editor.graph.outputs
            or node.name not in by_name(editor_of(changed))
        )
    assert done or name in {"function", "lstm"}


@pytest.mark.parametrize(("places", "read"), [((1, 2), "a a b"), ((0, 1), "b a a")])
def test_inputs_are_exchanged_by_their_places(places: tuple[int, int], read: str, tmp_path: Path) -> None:
    """A node that reads one tensor twice is another one by each of them."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
        small (float[2, 3] x) => (float[2, 9] y) { a = Relu (x) b = Neg (x) y = Concat <axis = 1> (a, b, a) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    editor = editor_of(model_of("onnx", tmp_path / "model.onnx"))
    node = next(node for node in editor.graph.nodes if node.op == "Concat")
    editor.swap_inputs(node, *places)
    made = onnx.load(editor.save(tmp_path / "changed", "model").path)
    assert list(made.graph.node[-1].input) == read.split()

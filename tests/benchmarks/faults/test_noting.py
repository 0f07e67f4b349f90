"""What a fault is about, by the changes of an editor that make it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.faults.noting import new_layers, noted
from benchmarks.faults.steps import insert
from conrepair.formats.editing.editor import Editor
from conrepair.formats.onnx.edit.editor import OnnxEditor
from tests.support.onnx_networks import written
from tests.support.small_models import model_of

_TEXT = """small (float[2, 3] x, float[2, 3] z) => (float[2, 3] y, float[2, 3] s) {
    [first] a = Relu (x)
    [middle] b = Sub (a, z)
    [last] y = Tanh (b)
    [beside] s = Neg (z)
}"""


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    return OnnxEditor(model_of("onnx", written(tmp_path / "model.onnx", _TEXT, {}, 20)))


def test_changes_are_about_their_node(editor: Editor) -> None:
    nodes, touched = {node.name: node for node in editor.graph.nodes}, noted(editor)
    assert not touched
    editor.swap_inputs(nodes["middle"], 0, 1)
    assert touched == {"middle"}
    editor.set_operator(nodes["last"], "Relu", {})
    assert touched == {"middle", "last"}


def test_what_is_gone_is_told_by_its_neighbours(editor: Editor) -> None:
    nodes, touched = {node.name: node for node in editor.graph.nodes}, noted(editor)
    editor.remove(nodes["middle"])
    assert touched == {"first", "last"}
    editor.remove(nodes["beside"])
    assert touched == {"first", "last", "beside"}


def test_ends_are_told_by_who_computes_or_reads_them(editor: Editor) -> None:
    touched = noted(editor)
    editor.exchange_outputs(0, 1)
    assert touched == {"last", "beside"}
    editor.exchange_inputs(0, 1)
    assert touched == {"first", "middle", "last", "beside"}


def test_what_is_put_in_is_new(editor: Editor, tmp_path: Path) -> None:
    touched = noted(editor)
    insert(editor, "a", [("Tanh", {}, [])], "bent")
    assert touched == {"first"}
    (new,) = new_layers(editor, editor.save(tmp_path, "changed"))
    assert new.startswith("a/bent/Tanh")

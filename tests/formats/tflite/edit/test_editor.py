"""Options of TFLite's operators that edits change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tflite_files import Writer

from conrepair.formats.editing.editor import Editor, NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework


def product(path: Path, *, turned: bool, constant: bool = False) -> object:
    writer = Writer()
    left = writer.tensor("left", (3, 3))
    data = np.arange(9, dtype=np.float32).reshape(3, 3) if constant else None
    right, result = writer.tensor("right", (3, 3), data=data), writer.tensor("result", (3, 3))
    options = schema.BatchMatMulOptionsT(adjX=turned, adjY=False)
    writer.operator("BATCH_MATMUL", [left, right], [result], options)
    return writer.write(path, [left] if constant else [left, right], [result])


@pytest.mark.parametrize(("name", "axis"), [("transpose_a", 0), ("transpose_b", 1)])
def test_operands_of_a_product_are_turned(name: str, axis: int, tmp_path: Path) -> None:
    editor = open_editor(product(tmp_path / "product.tflite", turned=False))  # type: ignore[arg-type]
    [node] = editor.graph.nodes
    editor.set_attributes(node, {name: True})
    folder = tmp_path / "out"
    folder.mkdir()
    runnable = framework("tflite").load(editor.save(folder, "repaired"))
    operands = [np.random.default_rng(place).normal(size=(3, 3)).astype(np.float32) for place in range(2)]
    [given] = runnable.run({spec.name: array for spec, array in zip(runnable.inputs, operands, strict=True)}).values()
    operands[axis] = operands[axis].T
    np.testing.assert_allclose(given, operands[0] @ operands[1], rtol=1e-5)


def test_a_constant_operand_is_turned_in_its_numbers(tmp_path: Path) -> None:
    editor = open_editor(product(tmp_path / "product.tflite", turned=False, constant=True))  # type: ignore[arg-type]
    [node] = editor.graph.nodes
    with pytest.raises(NotEditableError, match="transpose_b"):
        editor.set_attributes(node, {"transpose_b": True})


def bounded(path: Path) -> Model:
    """A sum whose result is kept between -1 and 1 by the operator itself."""
    writer = Writer()
    one, result = writer.tensor("one", (2, 6)), writer.tensor("result", (2, 6))
    two = writer.tensor("two", (6,), data=np.array([0, 1, -1, 2, 3, -4], np.float32))
    options = schema.AddOptionsT(fusedActivationFunction=schema.ActivationFunctionType.RELU_N1_TO_1)
    writer.operator("ADD", [one, two], [result], options)
    return writer.write(path, [one], [result])


def answered(editor: Editor, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The sum in front of the activation, and what the written file makes of it."""
    folder.mkdir()
    runnable = framework("tflite").load(editor.save(folder, "repaired"))
    given = 5 * np.random.default_rng(4).normal(size=(2, 6)).astype(np.float32)
    [result] = runnable.run({runnable.inputs[0].name: given}).values()
    return given + np.array([0, 1, -1, 2, 3, -4], np.float32), result


@pytest.mark.parametrize(
    ("changes", "low", "high"),
    [
        ({"min": 0.0, "max": 6.0}, 0.0, 6.0),
        ({"min": 0.0, "max": None}, 0.0, np.inf),
        ({"max": 2.5}, -1.0, 2.5),
        ({"min": -2.0, "max": float("inf")}, -2.0, np.inf),
    ],
)
def test_bounds_within_an_operator_are_seen_and_changed(
    changes: dict[str, Any], low: float, high: float, tmp_path: Path
) -> None:
    editor = open_editor(bounded(tmp_path / "bounded.tflite"))
    [_, activation] = editor.graph.nodes
    assert (activation.op, dict(activation.attributes)) == ("Clip", {"min": -1.0, "max": 1.0})
    editor.set_attributes(activation, changes)
    total, result = answered(editor, tmp_path / "out")
    np.testing.assert_allclose(result, total.clip(low, high), atol=1e-6)


@pytest.mark.parametrize(
    ("operator", "attributes", "function"),
    [
        ("Relu", {}, lambda x: np.maximum(x, 0)),
        ("Clip", {"min": 0.0, "max": 6.0}, lambda x: x.clip(0, 6)),
        ("Clip", {"min": -3.0, "max": 6.0}, lambda x: x.clip(-3, 6)),
        ("Sigmoid", {}, lambda x: 1 / (1 + np.exp(-x))),
    ],
)
def test_bounds_within_an_operator_become_another_activation(
    operator: str, attributes: dict[str, Any], function: Any, tmp_path: Path
) -> None:
    editor = open_editor(bounded(tmp_path / "bounded.tflite"))
    editor.set_operator(editor.graph.nodes[1], operator, attributes)
    total, result = answered(editor, tmp_path / "out")
    np.testing.assert_allclose(result, function(total), atol=1e-5)


def test_bounds_within_an_operator_are_taken_out(tmp_path: Path) -> None:
    editor = open_editor(bounded(tmp_path / "bounded.tflite"))
    editor.remove(editor.graph.nodes[1])
    total, result = answered(editor, tmp_path / "out")
    np.testing.assert_allclose(result, total, atol=1e-6)

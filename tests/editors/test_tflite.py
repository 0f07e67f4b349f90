"""Options of TFLite's operators that edits change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tflite_files import Writer

from conrepair.editors.editor import NotEditableError
from conrepair.editors.registry import open_editor
from conrepair.frameworks.registry import framework


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

"""The projections of Keras's attention layer are read and written in the vocabulary's order of axes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.files.whole import sha256_of

keras = pytest.importorskip("keras")

WIDTH, HEADS, SIZE = 6, 2, 4
SHAPES = dict.fromkeys(("query", "key", "value"), (WIDTH, HEADS * SIZE)) | {
    "output": (HEADS * SIZE, WIDTH),
    **{f"{role}_bias": (HEADS * SIZE,) for role in ("query", "key", "value")},
    "output_bias": (WIDTH,),
}


@pytest.mark.parametrize("role", SHAPES)
def test_a_projection_is_set(role: str, tmp_path: Path) -> None:
    tensor = keras.Input((3, WIDTH))
    model = keras.Model(tensor, keras.layers.MultiHeadAttention(HEADS, SIZE, name="attention")(tensor, tensor))
    path = tmp_path / "model.keras"
    model.save(path)
    numbers = np.arange(np.prod(SHAPES[role]), dtype=np.float32).reshape(SHAPES[role])
    editor = open_editor(Model("keras", str(path), sha256_of(path)))
    [node] = [node for node in editor.graph.nodes if node.op == "Attention"]
    assert node.parameters[role].shape == SHAPES[role]
    editor.set_parameter(node, role, numbers)
    layer = keras.models.load_model(editor.save(tmp_path, "again").path).get_layer("attention")
    dense = getattr(layer, f"_{role.removesuffix('_bias')}_dense")
    stored = np.asarray(dense.bias if role.endswith("_bias") else dense.kernel)
    assert stored.ravel() == pytest.approx(numbers.ravel())

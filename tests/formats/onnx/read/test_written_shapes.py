"""Shapes that stand in a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx.parser import parse_model

from conrepair.formats.onnx.read.plain import batch_numbers, written_shapes


def test_shapes_of_initializers_and_constants(tmp_path: Path) -> None:
    model = parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        net (float[batch, 6] x, int64[2] given) => (float[a, b] y) {
          two = Constant <value_ints = [1, 2]> ()
          three = Constant <value = int64[3] {4, -1, 3}> ()
          a = Reshape(x, held)
          b = Reshape(a, three)
          c = Expand(b, three)
          y = Reshape(c, given)
        }"""
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1, 2, 3]), "held"))
    onnx.save(model, tmp_path / "net.onnx")
    found = written_shapes(tmp_path / "net.onnx")
    assert found == {"a": (-1, 2, 3), "b": (4, -1, 3), "c": (4, -1, 3)}
    assert (batch_numbers(found, {0}), batch_numbers(found, {1})) == ([4], [2, 4])

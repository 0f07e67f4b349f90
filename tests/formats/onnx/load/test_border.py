"""Maps and sequences at the border of ONNX graphs, as tensors."""

from __future__ import annotations

from pathlib import Path

import ml_networks
import numpy as np
import onnx

from conrepair.formats.models.model import Model
from conrepair.formats.onnx.load.border import plain_border, written_border
from conrepair.formats.onnx.load.framework import FRAMEWORK
from conrepair.ground.runtime.onnx_session import open_session

ROWS = np.float32([[1, 0], [0.5, 2], [-1, -1]])


def test_a_map_is_its_values_in_the_order_of_its_keys(tmp_path: Path) -> None:
    path = ml_networks.classifier(tmp_path / "a.onnx", keys=(2, 0, 1))
    runnable = FRAMEWORK.load(Model("onnx", str(path), ""))
    assert runnable.outputs[1].keys == (0, 1, 2)
    labels, given = open_session(path).run(None, {"x": ROWS})
    found = runnable.run({"x": ROWS})
    np.testing.assert_array_equal(found["label"], labels)
    np.testing.assert_array_equal(found["probabilities"], [[row[key] for key in (0, 1, 2)] for row in given])


def test_a_map_is_written_back(tmp_path: Path) -> None:
    path = ml_networks.classifier(tmp_path / "a.onnx", keys=(2, 0, 1))
    before, proto = onnx.load(path), onnx.load(path)
    border = plain_border(proto)
    assert [node.op_type for node in proto.graph.node] == ["LinearClassifier", "Normalizer", "Gather"]
    written_border(proto, border)
    assert proto == before


def test_a_map_that_is_fed_is_a_row(tmp_path: Path) -> None:
    path = ml_networks.counts(tmp_path / "a.onnx", vocabulary=("b", "c", "a"))
    runnable = FRAMEWORK.load(Model("onnx", str(path), ""))
    [spec] = runnable.inputs
    assert (spec.shape, spec.keys) == ((1, 3), ("a", "b", "c"))
    [expected] = open_session(path).run(None, {"features": {"a": 1.0, "b": 2.0, "c": 3.0}})
    found = runnable.run({"features": np.float32([[1, 2, 3]])})
    np.testing.assert_array_equal(found["y"], expected)


def test_places_of_a_sequence(tmp_path: Path) -> None:
    path = ml_networks.sequence(tmp_path / "a.onnx")
    rows = np.float32([[1, 2, 3], [4, 5, 6]])
    found = FRAMEWORK.load(Model("onnx", str(path), "")).run({"x": rows})
    assert list(found) == ["parts[0]", "parts[1]"]
    np.testing.assert_array_equal(found["parts[1]"], 2 * rows)


def test_rows_of_a_sequence(tmp_path: Path) -> None:
    path = ml_networks.sequence(tmp_path / "a.onnx", places=False)
    rows = np.float32([[1, 2, 3], [4, 5, 6]])
    found = FRAMEWORK.load(Model("onnx", str(path), "")).run({"x": rows})
    np.testing.assert_array_equal(found["parts/rows"], 2 * rows)
    np.testing.assert_array_equal(found["parts/sizes"], [[1, 3], [1, 3]])

"""Copies that hold what was changed alone, of files with weights inside and outside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import ChangedModel, Model
from conrepair.formats.onnx.read.network import open_network
from conrepair.ground.data.tensor_spec import TensorSpec

_SIZE = 96
_WEIGHTS = {name: np.random.default_rng(place).standard_normal((_SIZE, _SIZE)) for place, name in enumerate("abc")}


def written(path: Path, *, outside: bool) -> Model:
    """Three products in a row."""
    nodes = [helper.make_node("MatMul", [one, two], [three], name=two) for one, two, three in ("xar", "rbs", "scy")]
    ends = [helper.make_tensor_value_info(name, 1, ["n", _SIZE]) for name in "xy"]
    weights = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in _WEIGHTS.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=outside, location="beside.bin", size_threshold=0)
    return Model("onnx", str(path), "")


@pytest.mark.parametrize("outside", [True, False])
def test_what_is_not_changed_is_read_where_it_is(tmp_path: Path, outside: bool) -> None:
    model = written(tmp_path / "model.onnx", outside=outside)
    editor = open_editor(model)
    again = editor.again()
    for one in (editor, again):
        node = next(node for node in one.graph.nodes if node.name == "b")
        one.set_parameter(node, "weight", np.eye(_SIZE, dtype=np.float32))
    for folder in ("changes", "whole"):
        (tmp_path / folder).mkdir()
    changed, whole = editor.save_changes(tmp_path / "changes", "new"), again.save(tmp_path / "whole", "new")
    assert isinstance(changed, ChangedModel)
    assert [item.name for item in (tmp_path / "changes").iterdir()] == ["new.onnx"]
    assert Path(changed.path).stat().st_size < 1.1 * 4 * _SIZE**2
    x = np.ones((2, _SIZE), np.float32)
    inputs = [TensorSpec("x", x.shape, "float32")]
    one, two = (open_network(item, inputs).segment(["x"], ["y"]).run({"x": x})["y"] for item in (changed, whole))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one, x @ _WEIGHTS["a"] @ _WEIGHTS["c"], rtol=1e-3)
    files = sorted(item.name for item in (tmp_path / "whole").iterdir())
    assert files == (["new.onnx", "new.onnx.data"] if outside else ["new.onnx"])
    onnx.checker.check_model(whole.path, full_check=True)

"""Patches in files, and on models of another format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from conrepair.diagnosis.repairs.edits import (
    AddOutput,
    ComputeInFloat,
    DropOutput,
    Edit,
    ExchangeInputs,
    ExchangeOutputs,
    Graft,
    MoveOutputs,
    Remove,
    Requantize,
    SetAttributes,
    SetOperator,
    SetParameter,
    SetRange,
    SwapInputs,
    in_words,
)
from conrepair.diagnosis.repairs.patch import Patch, read_patch, write_patch
from conrepair.diagnosis.repairs.repair import apply_patch
from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.operation import Operation
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import DataError
from tests.support.native_models import tflite_file

EDITS: list[Edit] = [
    SetParameter("conv", "weight", np.arange(6, dtype=np.float32).reshape(2, 3)),
    Requantize("conv", "weight", np.float32([[0.1, -0.2]])),
    SetRange("y", -0.1, 1 / 3),
    ComputeInFloat(
        "y",
        (
            Operation(
                "DequantizeLinear", ("x",), {}, {"scale": np.array(0.1, np.float32), "zero_point": np.uint8([3])}
            ),
            Operation("Relu", (0,), {}),
            Operation(
                "QuantizeLinear", (1,), {}, {"scale": np.array(7, np.float32), "zero_point": np.array(-4, np.int8)}
            ),
        ),
    ),
    SetAttributes("conv", {"pads": (1, 1, 1, 1), "auto_pad": "NOTSET", "alpha": 0.5, "keepdims": True, "axis": None}),
    SetOperator("act", "LeakyRelu", MappingProxyType({"alpha": 0.1})),
    Remove("extra", 1),
    Graft("y", (Operation("Add", ("y", 0), {"axis": 1}, {"operand": np.float32([1, 2])}),), ("n",)),
    SwapInputs("sub", 0, 1),
    AddOutput("inner"),
    DropOutput(1),
    ExchangeOutputs(0, 2),
    MoveOutputs(1, 0),
    ExchangeInputs(1, 0),
]


def same(one: object, two: object) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(two, np.ndarray) and one.dtype == two.dtype and np.array_equal(one, two)
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, Operation) and isinstance(two, Operation):
        return all(same(getattr(one, field.name), getattr(two, field.name)) for field in fields(one))
    return one == two


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "patch.json"
    write_patch(Patch(tuple(EDITS)), path, "abc")
    patch, target = read_patch(path)
    assert target == "abc"
    assert len(patch.edits) == len(EDITS)
    for one, two in zip(EDITS, patch.edits, strict=True):
        assert type(one) is type(two)
        assert all(same(getattr(one, field.name), getattr(two, field.name)) for field in fields(one))


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: type(edit).__name__)
def test_every_edit_has_words(edit: Edit) -> None:
    words = in_words(edit)
    assert getattr(edit, "node", getattr(edit, "tensor", "")) in words


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"version": 2}', '{"version": 1, "arrays": "../../away.npz", "target_sha256": "", "edits": []}',
     '{"version": 1, "arrays": null, "target_sha256": "", "edits": [{"edit": "Unknown"}]}',
     '{"version": 1, "arrays": null, "target_sha256": "", "edits": [{"edit": "Remove", "nodes": "x"}]}'],
)  # fmt: skip
def test_what_is_no_patch_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "patch.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"patch\.json"):
        read_patch(path)


def test_a_patch_has_no_pickles(tmp_path: Path) -> None:
    path = tmp_path / "patch.json"
    write_patch(Patch((EDITS[0],)), path, "")
    np.savez(tmp_path / "patch.npz", array_0=np.array([{}], dtype=object))
    with pytest.raises(DataError):
        read_patch(path)
    assert json.loads(path.read_text())["arrays"] == "patch.npz"


def test_a_node_that_is_not_there_is_refused_and_nothing_written(tmp_path: Path) -> None:
    model = tflite_file("image", tmp_path)
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(NotEditableError, match="nobody"):
        Patch((Remove("nobody"),)).apply(model, folder, "changed")
    assert list(folder.iterdir()) == []


def test_patches_are_told_apart_by_each_number() -> None:
    """NumPy's text of a large array leaves out its middle."""
    large = np.zeros(5000, np.float32)
    other = large.copy()
    other[2500] = 1
    one, two = (Patch((SetParameter("conv", "weight", array),)).digest for array in (large, other))
    assert one != two
    assert one == Patch((SetParameter("conv", "weight", large.copy()),)).digest


def test_a_patch_fits_a_model_in_two_files(tmp_path: Path) -> None:
    """Its hash is that of both, not of the first."""
    shape = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64])
    weight = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], "mm")], "g", [shape], [result], [weight])
    path = tmp_path / "model.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=True, location="model.data", size_threshold=0)
    wrong = Model("onnx", str(path), model_sha256(path))
    patch = Patch((SetParameter("mm", "weight", np.zeros((64, 64), np.float32)),))
    made = apply_patch(patch, wrong.sha256, wrong, tmp_path / "out")
    assert not numpy_helper.to_array(onnx.load(made.path).graph.initializer[0]).any()

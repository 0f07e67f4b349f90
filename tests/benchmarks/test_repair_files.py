"""How far answers differ, and what edits are about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.repair.edited_layers import edited_layers
from benchmarks.repair.files import agreement, quantized_tensors, size
from conrepair.diagnosis.repairs.edits import Graft, Remove, SetParameter
from conrepair.diagnosis.repairs.patch import Patch
from conrepair.formats.editing.operation import Operation
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.files.whole import sha256_of

_SCORES = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]], np.float32)


def test_answers_that_differ_are_counted() -> None:
    given = _SCORES.copy()
    given[1] = [0.2, 0.8]
    found = agreement({"scores": _SCORES}, {"scores": given})
    assert found.top1 == 1
    assert found.error == pytest.approx(0.6 * 2**0.5 / np.linalg.norm(_SCORES), rel=1e-5)


def test_a_sample_that_differs_in_two_outputs_counts_once() -> None:
    right = {"one": _SCORES, "two": _SCORES[:, ::-1]}
    other = {"one": _SCORES[[1, 1, 2]], "two": _SCORES[[1, 1, 2], ::-1]}
    assert agreement(right, other).top1 == 1


def test_what_is_not_finite_is_infinitely_far() -> None:
    found = agreement({"scores": _SCORES}, {"scores": np.full_like(_SCORES, np.nan)})
    assert (found.error, found.top1) == (float("inf"), 3)


def test_the_same_answers_differ_by_nothing() -> None:
    found = agreement({"scores": _SCORES}, {"scores": _SCORES.copy()})
    assert (found.error, found.top1) == (0.0, 0)


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """first (a product, its weight stored in eight bits) > relu > last (a product)."""
    weight = np.eye(3, dtype=np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["stored", "scale"], ["read"], name="read"),
        helper.make_node("MatMul", ["x", "read"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("MatMul", ["b", "weight"], ["y"], name="last"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "y")]
    held = [
        numpy_helper.from_array(np.eye(3, dtype=np.int8), "stored"),
        numpy_helper.from_array(np.float32(1), "scale"),
        numpy_helper.from_array(weight, "weight"),
    ]
    proto = helper.make_model(
        helper.make_graph(nodes, "net", values[:1], values[1:], held), opset_imports=[helper.make_opsetid("", 17)]
    )
    proto.ir_version = 8
    onnx.checker.check_model(proto)
    path = tmp_path / "model.onnx"
    onnx_ir.save(onnx_ir.from_proto(proto), path)
    return Model("onnx", str(path), sha256_of(path))


def test_an_edit_is_about_its_node(model: Model) -> None:
    patch = Patch((SetParameter("last", "weight", 2 * np.eye(3, dtype=np.float32)), Remove("relu")))
    assert edited_layers(patch, model) == [["last"], ["relu"]]


def test_an_inserted_operator_is_about_both_sides(model: Model) -> None:
    put_in = Graft("b", (Operation("Sigmoid", ("b",)),))
    patch = Patch((put_in, SetParameter("last", "weight", np.ones((3, 3), np.float32))))
    assert edited_layers(patch, model) == [["last", "relu"], ["last"]]


def test_tensors_in_eight_bits_are_counted(model: Model) -> None:
    assert quantized_tensors(model) == 1
    assert size(Path(model.path)) == Path(model.path).stat().st_size

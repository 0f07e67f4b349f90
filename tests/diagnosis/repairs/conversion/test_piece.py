"""Pieces of graphs compute what they computed in the whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import parser

from conrepair.diagnosis.repairs.conversion.piece import NoPieceError, outline, piece
from conrepair.formats.onnx.passes.files import load
from conrepair.ground.runtime.onnx_session import open_session

_TEXT = """<ir_version: 8, opset_import: ["" : 17]> g (float[n, 3] x, bool c) => (float[n, 3] y)
<float[3] b = {1, 2, 3}>
{ a = Add (x, b) r = Relu (a) s = Sin (r)
  y = If (c) <then_branch = t () => (float[n, 3] p) { p = Mul (r, s) }, else_branch = e () => (float[n, 3] q) { q = Identity (s) }> }"""  # noqa: E501


@pytest.fixture
def whole(tmp_path: Path) -> onnx_ir.Model:
    onnx.save(parser.parse_model(_TEXT), tmp_path / "net.onnx")
    nodes = outline(tmp_path / "net.onnx", (), tmp_path / "outline.onnx")
    assert [node["operator"] for node in nodes] == ["Add", "Relu", "Sin", "If"]
    return load(tmp_path / "outline.onnx")


def run(model: onnx_ir.Model, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    proto = onnx_ir.to_proto(model)
    onnx.checker.check_model(proto)
    session = open_session(proto.SerializeToString())
    return dict(zip([item.name for item in session.get_outputs()], session.run(None, feeds), strict=True))


def test_a_middle_part(whole: onnx_ir.Model) -> None:
    part = piece(whole, {1, 2})
    assert [value.name for value in part.graph.inputs] == ["a"]
    array = np.array([[-1, 0.5, 2]], np.float32)
    found = run(part, {"a": array})
    assert set(found) == {"r", "s"}
    np.testing.assert_allclose(found["s"], np.sin(np.maximum(array, 0)), rtol=1e-6)


def test_parts_that_do_not_touch(whole: onnx_ir.Model) -> None:
    part = piece(whole, {0, 2})
    assert {value.name for value in part.graph.inputs} == {"x", "r"}
    assert list(part.graph.initializers) == ["b"]


def test_what_a_branch_reads_is_an_input(whole: onnx_ir.Model) -> None:
    part = piece(whole, {3})
    assert {value.name for value in part.graph.inputs} == {"c", "r", "s"}
    array = np.ones((1, 3), np.float32)
    found = run(part, {"c": np.array(True), "r": 2 * array, "s": 3 * array})
    np.testing.assert_array_equal(found["y"], 6 * array)


def test_what_is_fed_by_constants_only_is_no_piece(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) <float[2] b = {1, 2}>'
    onnx.save(parser.parse_model(text + "{ s = Sin (b) y = Add (x, s) }"), tmp_path / "net.onnx")
    outline(tmp_path / "net.onnx", (), tmp_path / "outline.onnx")
    with pytest.raises(NoPieceError, match="they read no input"):
        piece(load(tmp_path / "outline.onnx"), {0})

"""What an ONNX file says about its external data may be anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from conrepair.formats.models.identity import model_files, model_sha256
from conrepair.ground.runtime.files.whole import sha256_of


def with_location(path: Path, location: str) -> Path:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) {y=Add(x,w)}'
    )
    tensor = numpy_helper.from_array(np.zeros(4, np.float32), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    model.graph.initializer.append(tensor)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("location", ["a\0b", "x" * 5000, "d/" * 5000, "", "..", "loop", "file/x", "/etc/passwd"])
def test_a_location_that_can_be_no_file_is_none(tmp_path: Path, location: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("")
    path = with_location(tmp_path / "model.onnx", location)
    assert model_files(path) == (path,)
    assert model_sha256(path) == sha256_of(path)


def test_a_location_that_is_not_utf_8_is_none(tmp_path: Path) -> None:
    path = with_location(tmp_path / "model.onnx", "weights")
    path.write_bytes(path.read_bytes().replace(b"weights", b"wei\xff\xfets"))
    assert model_files(path) == (path,)


def test_data_of_a_function_s_body_belong_to_the_model(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "own" : 1]> g (float[4] x) => (float[4] y) {y = own.f (x)}'
        '<domain: "own", opset_import: ["" : 17]> f (x) => (y) {w = Constant <value = float[4] {1, 2, 3, 4}> ()'
        " y = Add (x, w)}"
    )
    tensor = model.functions[0].node[0].attribute[0].t
    tensor.ClearField("float_data")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="held")
    path, held = tmp_path / "model.onnx", tmp_path / "held"
    path.write_bytes(model.SerializeToString())
    held.write_bytes(np.zeros(4, np.float32).tobytes())
    assert model_files(path) == (path, held)
    before = model_sha256(path)
    held.write_bytes(np.ones(4, np.float32).tobytes())
    assert model_sha256(path) != before

"""ONNX Runtime's graph is looked into as it's optimized."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair_lab.systems.ort import SYSTEM

TEXT = """<ir_version: 8, opset_import: ["" : 17]> g (float[1, 64] x) => (float[1, 64] y)
{ a = MatMul (x, w) b = Sigmoid (a) c = Mul (a, b) d = Identity (c) y = Tanh (d) }"""


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("none", ["MatMul", "Sigmoid", "Mul", "Identity", "Tanh"]),
        ("basic", ["MatMul", "Sigmoid", "Mul", "Tanh"]),
        ("all", ["MatMul", "Swish", "Tanh"]),
    ],
)
def test_what_optimizations_leave_is_shown(name: str, kinds: list[str], beside: bool, tmp_path: Path) -> None:
    made = onnx.parser.parse_model(TEXT)
    weight = np.eye(64, dtype=np.float32)
    made.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    path = tmp_path / "net.onnx"
    onnx.save(made, path, save_as_external_data=beside, size_threshold=0)
    model, setting = Model("onnx", str(path), model_sha256(path)), SYSTEM.settings[name]
    found = SYSTEM.observed(model, setting, tmp_path)
    assert found is not None
    assert [node.op for node in found.graph.nodes] == kinds
    x = np.linspace(-2, 2, 64, dtype=np.float32)[None]
    ran = found.segment(["x"], ["a", "y"]).run({"x": x})
    np.testing.assert_array_equal(ran["a"], x)
    np.testing.assert_allclose(ran["y"], np.tanh(x / (1 + np.exp(-x))), atol=1e-6)


def test_what_runs_on_a_gpu_is_not_seen(tmp_path: Path) -> None:
    assert SYSTEM.observed(Model("onnx", "", ""), SYSTEM.settings["cuda"], tmp_path) is None

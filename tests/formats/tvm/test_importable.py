"""What TVM's ONNX importer stops at or misreads is written so that it takes it, and answers as ONNX Runtime does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnx_networks as networks
import pytest
import small_models as small

from conrepair.formats.models.registry import framework
from conrepair.formats.tvm.backend import BACKEND

X = np.random.default_rng(0).uniform(0.5, 2, (3, 4, 5)).astype(np.float32)


def check(folder: Path, text: str, opset: int = 17, setting: str = "O0", x: npt.NDArray[np.float32] = X) -> None:
    weights = {
        "whole": networks.drawn(4, 5), "row": networks.drawn(5, seed=1), "one": networks.drawn(seed=2),
        "tall": networks.drawn(4, 1, seed=3), "more": networks.drawn(1, 4, 5, seed=4),
    }  # fmt: skip
    path = networks.written(folder / "net.onnx", text, {}, opset)
    proto = onnx.load(path)
    used = {name for node in proto.graph.node for name in node.input}
    stored = [onnx.numpy_helper.from_array(np.asarray(item), name) for name, item in weights.items() if name in used]
    proto.graph.initializer.extend(stored)
    onnx.save(proto, path)
    model = small.model_of("onnx", path)
    options = {"setting": setting}
    (folder / "build").mkdir()
    BACKEND.compile(model, options, 1, folder / "build")
    found = BACKEND.load(model, options | {"build": {"path": str(folder / "build")}}).run({"x": x})
    for name, expected in framework("onnx").load(model).run({"x": x}).items():
        np.testing.assert_allclose(found[name], expected, rtol=2e-5, atol=2e-6, strict=True)


REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")


def test_a_reduction_over_no_axes_is_one_over_all(tmp_path: Path) -> None:
    lines = [f"y{name} = Reduce{name} <axes: ints = [], keepdims = 1> (x)" for name in REDUCTIONS]
    outputs = ", ".join(f"float[1, 1, 1] y{name}" for name in REDUCTIONS)
    check(tmp_path, f"small (float[3, 4, 5] x) => ({outputs}) {{ {chr(10).join(lines)} }}")


@pytest.mark.parametrize(
    ("call", "opset"),
    [
        ("y = LayerNormalization <axis = 1> (x, row, one)", 17),
        ("y = LayerNormalization <axis = -2> (x, tall)", 17),
        ("y = LayerNormalization <axis = -1> (x, more, row)", 17),
        ("y, mean, inverse = LayerNormalization <axis = 1, epsilon = 0.25> (x, whole, row)", 17),
        ("y, mean, inverse = LayerNormalization <axis = 1> (x, whole, whole)", 18),
    ],
)
def test_a_normalization_takes_any_weights_and_gives_its_statistics(tmp_path: Path, call: str, opset: int) -> None:
    more = ", float[3, 1, 1] mean, float[3, 1, 1] inverse" if "mean" in call else ""
    check(tmp_path, f"small (float[3, 4, 5] x) => (float[3, 4, 5] y{more}) {{ {call} }}", opset)


@pytest.mark.parametrize("setting", ["O0", "O1", "O2", "O3"])
def test_hyperbolic_functions_are_computed_in_every_setting(tmp_path: Path, setting: str) -> None:
    text = """small (float[2, 16] x) => (float[2, 16] y, float[2, 1] z) {
        s = Sinh (x)
        c = Cosh (x)
        y = Mul (s, c)
        z = ReduceMean <axes = [1]> (y)
    }"""
    x = np.linspace(-9, 9, 32, dtype=np.float32).reshape(2, 16)
    check(tmp_path, text, setting=setting, x=x)

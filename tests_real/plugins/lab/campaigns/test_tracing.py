"""A trace of a real compiler, and of one on a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

import conrepair
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.gpu_devices import gpu_devices
from conrepair.ground.runtime.processes.reach import CONFINED, GPU
from conrepair_lab.campaigns.tracing import Tracing
from conrepair_lab.options.trace import Trace

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\ng (float[1, 16] x) => (float[1, 8] y) { '


def saved(path: Path, body: str, **weights: tuple[int, ...]) -> Path:
    model, rng = onnx.parser.parse_model(f"{HEAD}{body} }}"), np.random.default_rng(0)
    for name, shape in weights.items():
        array = rng.normal(scale=0.3, size=shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, path)
    return path


@pytest.fixture
def tanh(tmp_path: Path) -> Path:
    """TVM's tanh loses the digits of small numbers, and its fast one doesn't."""
    return saved(tmp_path / "tanh.onnx", "a = MatMul (x, w) b = Tanh (a) y = MatMul (b, v)", w=(16, 16), v=(16, 8))


def test_a_pass_of_tvm_is_the_one_that_mends(tanh: Path, tmp_path: Path) -> None:
    done = conrepair.trace(tanh, setting="tvm-fast", switch="FastMathTransform#0", evaluations=100)
    worst = done.found.deviations[0]
    assert (worst.kind, worst.blamed, done.exit_code) == ("wrong", "against", 1)
    assert done.found.against.name == "tvm-fast without FastMathTransform#0"
    assert {"ONNX's reference", "PyTorch"} <= set(done.found.referees)
    assert [[item.name for item in mends] for mends in done.culprits.mends] == [["FastMathTransform#0"]]
    assert done.culprits.builds <= 25
    guilty = [item for item in done.found.kernels.against if item.change == "generated"]
    assert [(item.operators, item.culprits) for item in guilty] == [(("MatMul", "Tanh"), ("Tanh 'b'",))]
    assert [(form.form, form.healed) for form in done.found.forms] == [("tanh by e^x", True)]
    names = {path.name for path in done.save(tmp_path / "out").iterdir()}
    assert {"with.py", "without.py", "model.onnx", "inputs.npz", "repaired.onnx", "trace.txt"} <= names


def test_a_side_on_a_gpu_takes_its_jobs_there(tanh: Path, tmp_path: Path) -> None:
    """Those that run it; and on a machine without one that's said."""
    tracing = Tracing(Trace(model=tanh, setting="cuda"), tanh, SimpleNamespace(room=tmp_path))  # type: ignore[arg-type]
    assert (tracing.found.setting.name, tracing.found.against.name) == ("tvm-cuda", "tvm-O0")
    assert tracing._task("trace", {}).device == tracing._task("answers", {}, tracing.found.setting).device == GPU
    assert tracing._task("answers", {}, tracing.found.against).device == CONFINED
    if gpu_devices():
        pytest.skip("there is a GPU here")
    with pytest.raises(ConrepairError, match="there is no cuda device here that TVM can reach"):
        conrepair.trace(tanh, setting="tvm-cuda", evaluations=10)


@pytest.mark.gpu
def test_kernels_on_a_gpu_are_looked_into(tanh: Path, tmp_path: Path) -> None:
    if not gpu_devices():
        pytest.skip("there is no GPU here")
    done = conrepair.trace(tanh, setting="tvm-cuda", evaluations=100)
    assert {"Tanh", "MatMul"} <= {name for item in done.found.kernels.setting for name in item.operators}
    folder = done.save(tmp_path / "out")
    subprocess.run([sys.executable, "with.py"], cwd=folder, check=True)

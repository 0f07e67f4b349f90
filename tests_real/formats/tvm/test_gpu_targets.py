"""OpenCL kernels through pyopencl, CUDA code through nvcc."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small
from crossed import slower
from onnx import helper, numpy_helper

from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.tvm import cuda
from conrepair.formats.tvm.backend import BACKEND
from conrepair.formats.tvm.cuda import find_compiler
from conrepair.formats.tvm.opencl_run import find_device
from conrepair.formats.tvm.switches import switches
from conrepair.ground.runtime.errors import ConfigError, ConversionError, DeviceError


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return small.model_of("onnx", small.onnx_convnet(tmp_path_factory.mktemp("source") / "net.onnx"))


@pytest.fixture
def opencl() -> None:
    """A device that compiles; an OpenCL compiler may not know the processor that it runs on."""
    try:
        find_device()
    except DeviceError as error:
        pytest.skip(str(error))


def run_both(model: Model, feeds: dict[str, Any], folder: Path, **options: Any) -> Any:
    batch = len(next(iter(feeds.values())))
    record = BACKEND.compile(model, options | {"check_device": True}, batch, folder)
    runnable = BACKEND.load(model, options | {"build": {"path": str(folder)}})
    return framework("onnx").load(model).run(feeds), runnable.run(feeds), record


@pytest.mark.parametrize("setting", [*slower("O0", "O1"), "O2", *slower("O3")])
def test_opencl_answers_as_the_source(setting: str, model: Model, tmp_path: Path, opencl: None) -> None:
    feeds = {"image": small.images(2)}
    expected, found, record = run_both(model, feeds, tmp_path, target="opencl", setting=setting)
    assert small.relative_l2(expected["probabilities"], found["probabilities"]) < 1e-6
    assert record["bridge"] is True
    assert record["device"].endswith(" through pyopencl")
    assert "__kernel" in (tmp_path / "device.cl").read_text()
    plans = json.loads((tmp_path / "kernels.json").read_text())["functions"]
    assert all(plan["launches"] for plan in plans.values())


def test_opencl_reductions_several_outputs_and_scratch(tmp_path: Path, opencl: None) -> None:
    tensor, kind = helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2),
            helper.make_node("Softmax", ["a"], ["s"], axis=1),
            helper.make_node("MatMul", ["b", "w"], ["m"]),
            helper.make_node("ReduceMean", ["m"], ["r"], keepdims=0),
            helper.make_node("Add", ["m", "r"], ["y"]),
        ],
        "g",
        [tensor("x", kind, [3, 140])],
        [tensor("s", kind, [3, 70]), tensor("y", kind, [3, 33])],
        [numpy_helper.from_array(np.random.default_rng(4).normal(size=(70, 33)).astype(np.float32), "w")],
    )
    net = small.model_of("onnx", small.save_onnx(tmp_path / "net.onnx", graph, opset=18))
    (tmp_path / "build").mkdir()
    feeds = {"x": np.random.default_rng(5).normal(size=(3, 140)).astype(np.float32)}
    expected, found, _ = run_both(net, feeds, tmp_path / "build", target="opencl", setting="O2")
    assert list(found) == ["s", "y"]
    for name in expected:
        assert small.relative_l2(expected[name], found[name]) < 1e-6


def test_opencl_without_a_device_is_said_before_building(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyopencl

    monkeypatch.setattr(pyopencl, "get_platforms", list)
    find_device.cache_clear()
    with pytest.raises(DeviceError, match=r"no OpenCL device.*nothing was built"):
        BACKEND.compile(model, {"target": "opencl", "check_device": True}, 1, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_opencl_whose_compiler_fails_is_said_before_building(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As PoCL's does on a processor that's newer than its LLVM."""
    import pyopencl

    def build(self: Any) -> None:
        raise pyopencl.RuntimeError("clBuildProgram failed\n\nerror: unknown target CPU 'generic'\nand more")

    if not any(platform.get_devices() for platform in pyopencl.get_platforms()):
        pytest.skip("there is no OpenCL device")
    monkeypatch.setattr(pyopencl.Program, "build", build)
    find_device.cache_clear()
    with pytest.raises(
        DeviceError,
        match=r"fail to compile .*: error: unknown target CPU 'generic' \(POCL_LLVM_CPU_NAME=.*nothing was",
    ):
        BACKEND.compile(model, {"target": "opencl", "check_device": True}, 1, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_opencl_leaves_nothing_in_the_users_folders(tmp_path: Path, opencl: None) -> None:
    """pyopencl's caches are databases, which confined workers can't write: kernels failed to run there."""
    words = (
        "import conrepair.formats.tvm.opencl_run as run, pyopencl as cl; "
        "context = cl.Context([run.find_device()]); cl.Kernel(cl.Program(context, run._TRIVIAL).build(), 'nothing')"
        "(cl.CommandQueue(context), (1,), None, cl.Buffer(context, cl.mem_flags.READ_WRITE, size=4))"
    )
    folders = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    subprocess.run([sys.executable, "-c", words], check=True, env=os.environ | folders)
    assert not (tmp_path / "cache").exists()


def test_a_loop_around_launches_is_refused() -> None:
    from tvm import tirx

    from conrepair.formats.tvm.opencl_bridge import _plan

    loop = tirx.For(tirx.Var("i", "int32"), 0, 4, tirx.ForKind.SERIAL, tirx.Evaluate(0))
    with pytest.raises(ConversionError, match=r"kernel odd needs TVM's own OpenCL runtime: .* a For"):
        _plan("odd", tirx.PrimFunc([], loop))


@pytest.mark.skipif(find_compiler() is None, reason="there is no nvcc here")
@pytest.mark.parametrize("setting", ["O0", *slower("O1", "O2"), "O3"])
def test_cuda_compiles_without_a_gpu(setting: str, model: Model, tmp_path: Path) -> None:
    record = BACKEND.compile(model, {"target": "cuda -arch=sm_90", "setting": setting}, 2, tmp_path)
    assert "__global__" in (tmp_path / "device.cu").read_text()
    assert (tmp_path / "device.cubin").read_bytes()[:4] == b"\x7fELF"
    assert record["nvcc"]["arguments"][:3] == ["-cubin", "-arch=sm_90", "--use_fast_math"]  # as TVM at run time
    assert record["when_built"] == f"compiled by nvcc {record['nvcc']['version']} for sm_90, not run"
    assert {"device.cu", "device.cubin", "module.so"} <= set(record["files"])


@pytest.mark.skipif(find_compiler() is None, reason="there is no nvcc here")
def test_cuda_can_be_exact(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options, before = {"target": "cuda -arch=sm_90", "setting": "O3"}, dict(os.environ)
    with monkeypatch.context() as quicker:
        quicker.setattr(cuda, "find_compiler", lambda: None)
        found = {item.name: item for item in switches(BACKEND.compile(model, options, 1, tmp_path), options)}
    assert found["fast_math"].sort == "arithmetic"
    assert found["fast_math"].line == "TVM_CUDA_COMPILE_MODE=nvcc TVM_CUDA_NVCC_NO_FAST_MATH=1"
    assert "FuseOps#0" in found
    exact = BACKEND.without(options, ["fast_math", "FuseOps#0"])
    assert exact == {**options, "fast_math": False, "left_out": ["FuseOps#0"]}
    (tmp_path / "exact").mkdir()
    record = BACKEND.compile(model, exact, 1, tmp_path / "exact")
    assert record["nvcc"]["arguments"][:3] == ["-cubin", "-arch=sm_90", "-o"]
    assert "fast_math" not in {item.name for item in switches(record, exact)}
    assert "FuseOps#0" not in record["applications"]
    assert dict(os.environ) == before


def test_tvm_is_told_to_compile_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """By variables that it reads when it compiles, and an nvcc that need not be on the PATH."""
    monkeypatch.setattr(cuda, "find_compiler", lambda: "/opt/cuda/bin/nvcc")
    with cuda.arithmetic(fast_math=False):
        assert {name: os.environ.get(name) for name in cuda.EXACT} == cuda.EXACT
        assert os.environ["PATH"].startswith(f"/opt/cuda/bin{os.pathsep}")
    assert cuda.EXACT.keys().isdisjoint(os.environ)
    with pytest.raises(ConfigError, match=r"fast_math: it's cuda's; .*\(-fast-math=1\)"):
        BACKEND.check({"target": "llvm", "fast_math": False})


def test_without_nvcc_cuda_is_only_generated(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tvm

    if tvm.get_global_func("device_api.cuda", allow_missing=True) is not None:
        pytest.skip("TVM compiles CUDA itself here")
    monkeypatch.setattr(cuda, "find_compiler", lambda: None)
    record = BACKEND.compile(model, {"target": "cuda -arch=sm_90"}, 2, tmp_path)
    assert record["when_built"] == "no nvcc: generated, neither compiled nor run"
    assert not (tmp_path / "device.cubin").exists()


def test_nvcc_of_the_environment_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nvcc = tmp_path / "nvidia" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.touch(0o755)
    packaged = importlib.metadata.PackagePath("nvidia/bin/nvcc")
    packaged.dist = importlib.metadata.PathDistribution(tmp_path / "nvidia_cuda_nvcc.dist-info")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.metadata, "files", {"nvidia-cuda-nvcc": [packaged]}.__getitem__)
    assert find_compiler() == str(nvcc)


def test_cuda_wants_an_architecture(model: Model, tmp_path: Path) -> None:
    import tvm

    if tvm.cuda(0).exist:
        pytest.skip("there is a CUDA device that says it")
    with pytest.raises(ConfigError, match="cuda -arch=sm_90"):
        BACKEND.compile(model, {"target": "cuda"}, 1, tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize("setting", ["O0", "O2"])
def test_cuda_answers_as_the_source(setting: str, model: Model, tmp_path: Path) -> None:
    import tvm

    if not tvm.cuda(0).exist:
        pytest.skip("there is no CUDA device here")
    expected, found, _ = run_both(model, {"image": small.images(2)}, tmp_path, target="cuda", setting=setting)
    assert small.relative_l2(expected["probabilities"], found["probabilities"]) < 1e-5

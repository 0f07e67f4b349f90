"""Which passes run, in which order, and that what they make still answers alike."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx_networks as networks
import pytest
import small_models as small

from conrepair.application.config.model import TvmConfig
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.tvm.backend import BACKEND
from conrepair.formats.tvm.options import read_options
from conrepair.formats.tvm.settings import CATALOGUE, SETTINGS, TUNED, explain, steps_of
from conrepair.formats.tvm.target import KINDS, parse_target
from conrepair.ground.runtime.errors import ConfigError, DataError, DeviceError, ModelLoadError
from conrepair.ground.runtime.processes.workers import Job, Success, Workers
from conrepair_legacy.settings import PASSES


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return small.model_of("onnx", small.onnx_convnet(tmp_path_factory.mktemp("source") / "net.onnx"))


def names(target: str, setting: str, **changes: Any) -> list[str]:
    return [step.name for step in steps_of(parse_target(target), setting, **changes)]


@pytest.mark.parametrize("kind", KINDS)
def test_higher_settings_run_more(kind: str) -> None:
    passes = [set(names(kind, setting)) for setting in SETTINGS[:-1]]
    for fewer, more in itertools.pairwise(passes):
        assert fewer < more
    assert "ApplyTuned" in names(kind, "tuned")
    assert {"LegalizeOps", "VMShapeLower"} <= passes[0]
    assert ("ScheduleCPU" in passes[-1]) == (kind == "llvm")
    assert ("ScheduleGPUFallback" in passes[0]) == (kind != "llvm")


def test_the_order_is_the_catalogues() -> None:
    order = [step.name for step in CATALOGUE]
    assert len(order) == len(set(order))
    found = names("llvm", "O0", required=["FuseTIR", "FuseOps"], disabled=["KillAfterLastUse"])
    assert found == sorted(found, key=order.index)
    assert {"FuseOps", "FuseTIR"} <= set(found)
    assert "KillAfterLastUse" not in found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"disabled_pass": ["FuseOp"]}, "did you mean 'FuseOps'"),
        ({"disabled_pass": ["LegalizeOps"]}, "nothing can be compiled without LegalizeOps"),
        ({"required_pass": ["ScheduleGPU"]}, "no pass 'ScheduleGPU' for llvm"),
        ({"required_pass": ["FuseOps"], "disabled_pass": ["FuseOps"]}, "which is it"),
        ({"target": "riscv"}, "unknown kind 'riscv'"),
        ({"target": "llvm mcpu=native"}, "isn't -name=value"),
        ({"setting": "O9"}, "there are O0"),
    ],
)
def test_what_does_not_exist_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_options(options)


def test_names_of_the_configuration_are_the_catalogues() -> None:
    free = [step.name for step in CATALOGUE if not step.mandatory and step.make is None and step.name != TUNED]
    assert set(PASSES) == set(free)


@pytest.mark.parametrize(("text", "cores"), [("llvm", None), ("llvm -num-cores=7", 7)])
def test_tuning_for_a_processor_knows_its_cores(text: str, cores: int | None) -> None:
    target = parse_target(text).for_tuning()
    cores = len(os.sched_getaffinity(0)) if cores is None else cores
    assert target.attributes.get("num-cores") == cores
    assert target.resolve().attrs.get("num-cores") == cores


def test_a_refusal_of_tvm_s_without_words_is_told_by_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> Any:
        raise ValueError(" \n")

    import tvm

    monkeypatch.setattr(tvm.target, "Target", refuse)
    with pytest.raises(ConfigError, match=r"TVM refuses it: ValueError$"):
        parse_target("llvm").resolve()


def test_explain_lists_the_passes() -> None:
    lines = explain(parse_target("llvm"), "O2").splitlines()
    listed = [line.split()[1] for line in lines[1:-1]]
    assert listed == names("llvm", "O2")


@pytest.mark.parametrize("setting", SETTINGS[:-1])
def test_a_setting_answers_as_the_source(setting: str, model: Model, tmp_path: Path) -> None:
    source = framework("onnx").load(model)
    options = {"setting": setting, "target": "llvm -mcpu=native" if setting == "O3" else "llvm"}
    record = BACKEND.compile(model, options, 3, tmp_path)
    runnable = BACKEND.load(model, options | {"build": {"path": str(tmp_path)}})
    feeds = {"image": small.images(3)}
    assert small.relative_l2(source.run(feeds)["probabilities"], runnable.run(feeds)["probabilities"]) < 1e-6
    assert record["pipeline"] == names("llvm", setting)
    ran = [name for name in record["passes_run"] if name in record["pipeline"]]
    assert list(dict.fromkeys(ran)) == [name for name in record["pipeline"] if name in ran]
    assert "LegalizeOps" in ran
    assert record == json.loads((tmp_path / "build.json").read_text())
    assert set(record["files"]) == {path.name for path in tmp_path.iterdir()} - {"build.json"}
    assert {"module.so", "relax.py", "host.ll"} <= set(record["files"])


def test_fusion_makes_fewer_kernels_and_can_be_left_out(model: Model, tmp_path: Path) -> None:
    counts = {}
    for name, options in {"O1": {"setting": "O1"}, "O2": {}, "apart": {"disabled_pass": ["FuseOps"]}}.items():
        (tmp_path / name).mkdir()
        counts[name] = BACKEND.compile(model, options, 1, tmp_path / name)["kernels"]
    assert counts["O2"] < counts["apart"] <= counts["O1"]


def test_a_batch_of_another_size_is_refused(model: Model, tmp_path: Path) -> None:
    BACKEND.compile(model, {"setting": "O0"}, 2, tmp_path)
    runnable = BACKEND.load(model, {"build": {"path": str(tmp_path)}})
    assert runnable.inputs[0].shape[0] == 2
    with pytest.raises(DataError, match=r"float32\[2, 3, 12, 10\] can't take data"):
        runnable.run({"image": small.images(3)})


def test_every_kernel_can_be_observed(model: Model, tmp_path: Path) -> None:
    from conrepair.formats.tvm.runnable import TvmRunnable

    BACKEND.compile(model, {"setting": "O2"}, 1, tmp_path)
    runnable = TvmRunnable(tmp_path)
    seen: list[str] = []

    def note(function: Any, name: str, before: bool, result: Any, *arguments: Any) -> None:
        if before:
            seen.append(name)

    runnable.observe(note)
    runnable.run({"image": small.images(1)})
    assert any("conv2d" in name for name in seen)


@pytest.mark.workers
def test_threads_reach_the_kernels(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", "4")  # that there are to choose from, whatever the processor
    (tmp_path / "build").mkdir()
    BACKEND.compile(model, {"setting": "O0"}, 1, tmp_path / "build")
    found = []
    with Workers(1, jobs={"threads": "worker_jobs:tvm_threads"}) as workers:
        for place, threads in enumerate((None, 1, 3, None)):
            options = TvmConfig(name="tvm", threads=threads).options | {"build": {"path": str(tmp_path / "build")}}
            (tmp_path / str(place)).mkdir()
            outcome = workers.call(Job("threads", {"options": options}, tmp_path / str(place)))
            assert isinstance(outcome, Success), outcome
            found.append(outcome.value["threads"])
    default, *wished, again = found
    assert wished == [1, 3]
    assert again == default  # the wish of another build doesn't stay


def test_a_folder_without_a_build_is_named(tmp_path: Path, model: Model) -> None:
    with pytest.raises(ModelLoadError, match="can't be loaded as a build of TVM"):
        BACKEND.load(model, {"build": {"path": str(tmp_path)}})


def test_a_device_that_is_not_there_is_said_before_building(model: Model, tmp_path: Path) -> None:
    import tvm

    if tvm.cuda(0).exist:
        pytest.skip("there is a CUDA device")
    with pytest.raises(DeviceError, match="no cuda device here"):
        BACKEND.compile(model, {"target": "cuda -arch=sm_90", "check_device": True}, 1, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_tile_computes_what_the_plain_loops_compute() -> None:
    """Sizes that no tile divides, several inputs of a sum, and a sum that nothing follows."""
    import tvm
    from tvm import te, topi

    from conrepair.formats.tvm.cpu_rule import CpuLoops

    generator = np.random.default_rng(2)
    x, w = te.placeholder((3, 13, 17), name="x"), te.placeholder((3, 17, 29), name="w")
    y = topi.nn.relu(topi.nn.batch_matmul(x, w, transpose_b=False))
    z = topi.sum(y, axis=(1,))
    target = tvm.target.Target({"kind": "llvm"})
    module = tvm.IRModule({"main": te.create_prim_func([x, w, y, z]).with_attr("global_symbol", "main")})
    from tvm.s_tir import dlight

    with target:
        scheduled = dlight.ApplyDefaultSchedule(CpuLoops())(module)
    assert "parallel" in scheduled.script()
    assert "vectorized" in scheduled.script()
    arrays = [generator.normal(size=[int(size) for size in item.shape]).astype("float32") for item in (x, w, y, z)]
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    tvm.compile(scheduled, target)(*tensors)
    expected = np.maximum(arrays[0] @ arrays[1], 0)
    np.testing.assert_allclose(tensors[2].numpy(), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(tensors[3].numpy(), expected.sum(1), rtol=1e-5, atol=1e-5)


def test_a_padding_behind_a_sum_is_written_whole(tmp_path: Path) -> None:
    """It reads each sum where it writes it, as an elementwise operator does, and writes zeros behind them."""
    text = """padded (float[1, 4, 8, 8] image) => (float[1, 8, 9, 9] y) {
        a = Conv (image, w)
        y = Pad (a, pads)
    }"""
    weights = {"w": networks.drawn(8, 4, 1, 1), "pads": np.array([0, 0, 0, 0, 0, 0, 1, 1])}
    model = small.model_of("onnx", networks.written(tmp_path / "net.onnx", text, weights))
    (tmp_path / "build").mkdir()
    BACKEND.compile(model, {"setting": "O3"}, 1, tmp_path / "build")
    runnable = BACKEND.load(model, {"build": {"path": str(tmp_path / "build")}})
    feeds = {"image": networks.drawn(1, 4, 8, 8, seed=7)}
    for value in (3.0, 5.0):  # what isn't written holds what the run before has left
        found = runnable.run({"image": feeds["image"] * value})["y"]
        np.testing.assert_array_equal(found[:, :, 8, :], 0)
        np.testing.assert_array_equal(found[:, :, :, 8], 0)
    found = runnable.run(feeds)["y"]
    assert small.relative_l2(framework("onnx").load(model).run(feeds)["y"], found) < 1e-6

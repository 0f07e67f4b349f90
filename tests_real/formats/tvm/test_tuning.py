"""Schedules that are measured."""

from __future__ import annotations

import importlib.metadata
import logging
from pathlib import Path
from typing import Any

import onnx_networks as networks
import pytest
import small_models as small

from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.tvm import measuring
from conrepair.formats.tvm.backend import BACKEND
from conrepair.formats.tvm.target import needs_bridge, parse_target
from conrepair.formats.tvm.tuning import check_tuning
from conrepair.ground.runtime.errors import ConfigError, ConversionError, DeviceError

TARGET = "llvm -num-cores=2"


@pytest.fixture
def working() -> None:
    """Where tuning works. MetaSchedule trips over handlers that pytest gives to loggers that don't propagate."""
    try:
        check_tuning("llvm")
    except ConversionError as error:
        pytest.skip(str(error))
    logging.getLogger("tvm.s_tir.meta_schedule").propagate = True


def product(path: Path, size: int) -> Model:
    """A model of one kernel."""
    text = f"product (float[2, {size}] x) => (float[2, {size}] y) {{ y = MatMul (x, w) }}"
    return small.model_of("onnx", networks.written(path, text, {"w": networks.drawn(size, size)}))


def tuned(model: Model, folder: Path, **options: Any) -> dict[str, int]:
    folder.mkdir()
    counts: dict[str, int] = BACKEND.compile(model, {"setting": "tuned", **options}, 2, folder)["tuning"]
    return counts


def records(folder: Path) -> int:
    return len((folder / "tuning" / "database_tuning_record.json").read_text().splitlines())


def test_a_library_that_crashes_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "0.1.15.post2")
    model = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    (tmp_path / "build").mkdir()
    with pytest.raises(
        ConversionError, match=r"crashes with apache-tvm-ffi 0\.1\.15\.post2.* Install apache-tvm-ffi 0"
    ):
        BACKEND.compile(model, {"setting": "tuned"}, 1, tmp_path / "build")


@pytest.mark.parametrize("target", ["opencl", "cuda -arch=sm_90"])
def test_a_target_that_nothing_can_be_measured_on_is_refused(target: str, tmp_path: Path, working: None) -> None:
    import tvm

    kind = target.partition(" ")[0]
    if not needs_bridge(kind) and tvm.device(kind, 0).exist:
        pytest.skip(f"TVM measures on {kind} here")
    model = product(tmp_path / "net.onnx", 8)
    with pytest.raises(DeviceError, match=r"'tuned' measures .* Choose another `setting`.*: O3"):
        tuned(model, tmp_path / "build", target=target)
    assert list((tmp_path / "build").iterdir()) == []


class _Device:
    """What TVM says of an H200."""

    max_shared_memory_per_block, max_threads_per_block, warp_size, compute_version = 49152, 1024, 32, "9.0"


def _space(target: Any) -> int:
    """In how many ways a product can be scheduled."""
    from tvm import te
    from tvm.s_tir import meta_schedule

    x, w = te.placeholder((32, 32), name="x"), te.placeholder((32, 32), name="w")
    middle = te.reduce_axis((0, 32))
    y = te.compute((32, 32), lambda i, j: te.sum(x[i, middle] * w[middle, j], axis=middle))
    product = te.create_prim_func([x, w, y])
    context = meta_schedule.TuneContext(mod=product, target=target, space_generator="post-order-apply")
    return len(context.generate_design_space())


def _asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A target, with what TVM says of the device that's here."""
    from tvm.target import detect_target

    detect = detect_target.SUPPORTED_DEVICE["cuda"]
    monkeypatch.setattr(detect_target, "detect_target_from_device", lambda _: detect(_Device()))
    return parse_target("cuda -arch=sm_80 -thread_warp_size=16").for_tuning()


def test_tuning_knows_what_a_block_of_a_gpu_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """TVM's own target of a kind hasn't all that its schedules ask for, and stop without."""
    asked = _asked(monkeypatch)
    assert asked.attributes == {
        "arch": "sm_80",
        "max_shared_memory_per_block": 49152,
        "max_threads_per_block": 1024,
        "registers_per_block": 65536,
        "thread_warp_size": 16,
    }, "what's given stays"


@pytest.mark.slow  # TVM reads all its tensor intrinsics for that: 35 s, ten times as long where frameworks are loaded
def test_what_a_block_may_have_suffices_to_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _space(_asked(monkeypatch).resolve()) > 0


def test_a_database_that_is_none_is_refused(tmp_path: Path, working: None) -> None:
    model = product(tmp_path / "net.onnx", 8)
    with pytest.raises(ConfigError, match=r"holds no tuning .*; give the folder `tuning` of a build"):
        tuned(model, tmp_path / "build", database=str(tmp_path))


def test_progress_is_how_many_candidates_are_done(tmp_path: Path) -> None:
    options = {"setting": "tuned", "trials": 12}
    assert BACKEND.progress(options, tmp_path) == ""
    (tmp_path / "tuning").mkdir()
    tally = measuring.Tally(tmp_path / "tuning" / "done", 4)
    assert BACKEND.progress(options, tmp_path) == "4 of 12 trials"
    assert tally.add() is None
    assert tally.add(MemoryError("no room")) == "MemoryError: no room"
    assert BACKEND.progress(options, tmp_path) == "6 of 12 trials"
    assert tally.failures == ["MemoryError: no room"]


@pytest.mark.slow
def test_tuning_keeps_what_it_measured(tmp_path: Path, working: None) -> None:
    model = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    options = {"setting": "tuned", "trials": 8, "target": TARGET}
    feeds = {"image": small.images(2)}
    expected = framework("onnx").load(model).run(feeds)["probabilities"]
    database, reused = None, 0
    for name in ("first", "again"):
        folder = tmp_path / name
        folder.mkdir()
        record = BACKEND.compile(model, options | {"database": database}, 2, folder)
        found = BACKEND.load(model, {"build": {"path": str(folder)}}).run(feeds)["probabilities"]
        assert small.relative_l2(expected, found) < 1e-6
        counts = record["tuning"]
        assert counts["reused"] == reused
        assert counts["measured"] + counts["failed"] == 8 - reused
        assert records(folder) == 8
        assert "ApplyTuned" in record["passes_run"]
        database, reused = str(folder / "tuning"), counts["measured"]
    assert reused == 0, "the second time nothing is measured"


@pytest.mark.slow
def test_only_what_was_measured_of_the_same_kernels_for_the_target_is_reused(tmp_path: Path, working: None) -> None:
    model, other = product(tmp_path / "net.onnx", 8), product(tmp_path / "other.onnx", 12)
    assert tuned(model, tmp_path / "first", target=TARGET, trials=2) == {
        "trials": 2,
        "reused": 0,
        "measured": 2,
        "failed": 0,
    }
    common: dict[str, Any] = {"database": str(tmp_path / "first" / "tuning"), "target": TARGET}
    for name, network, changes, reused, measured in (
        ("other model", other, {"trials": 2}, 0, 2),
        ("other target", model, {"trials": 2, "target": "llvm -num-cores=1"}, 0, 2),
        ("more", model, {"trials": 3}, 2, 1),
    ):
        counts = tuned(network, tmp_path / name, **common | changes)
        assert (counts["reused"], counts["measured"]) == (reused, measured), name
        assert records(tmp_path / name) == reused + measured
        assert BACKEND.progress({}, tmp_path / name) == "", "it's no file of the build"


@pytest.mark.slow
def test_failed_measurements_are_no_measurements(
    tmp_path: Path, working: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("no room")

    model, argument = product(tmp_path / "net.onnx", 8), measuring._argument
    monkeypatch.setattr(measuring, "_argument", fail)
    with pytest.raises(ConversionError, match=r"all 2 measurements failed: MemoryError: no room\."):
        tuned(model, tmp_path / "failed", target=TARGET, trials=2)
    assert records(tmp_path / "failed") == 2
    monkeypatch.setattr(measuring, "_argument", argument)
    database = str(tmp_path / "failed" / "tuning")
    counts = tuned(model, tmp_path / "again", target=TARGET, trials=2, database=database)
    assert counts == {"trials": 2, "reused": 0, "measured": 2, "failed": 0}

"""What compiles for a GPU, or runs what was, reaches it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conrepair.application.engine import job_table
from conrepair.application.engine.job_table import JOBS, jobs, reach_of
from conrepair.formats.backends.all_backends import backend, compiles
from conrepair.formats.tvm import backend as of_tvm
from conrepair.ground.runtime.processes.confinement import CONFINED, GPU, NETWORK, OPEN

_PI = {"host": "pi", "port": 9090}


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_table, "gpu_devices", lambda: ["/dev/nvidia0"])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, CONFINED),
        ({"target": "llvm -mcpu=native"}, CONFINED),
        ({"target": "cuda -arch=sm_90"}, GPU),
        ({"target": "opencl"}, GPU),
        ({"target": "opencl", "device": _PI}, NETWORK),
        ({"target": "llvm -mtriple=aarch64-linux-gnu", "device": _PI}, NETWORK),
    ],
)
def test_by_the_target_and_the_device(options: dict[str, Any], expected: str) -> None:
    assert backend("tvm").reach(options) == expected
    assert backend("libraries").reach({}) == CONFINED


@pytest.mark.parametrize("name", ["onnxruntime", "inductor"])
def test_by_the_device_of_a_library(name: str) -> None:
    assert [backend(name).reach(options) for options in ({}, {"device": "cpu"})] == [CONFINED] * 2
    assert backend(name).reach({"device": "cuda"}) == GPU


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ('{"options": {"target": "cuda -arch=sm_90"}}', GPU),
        ('{"options": {"target": "llvm"}}', CONFINED),
        ('{"options": {"target": "a gpu"}}', CONFINED),
        ('{"options": {"target": ""}}', CONFINED),
        ('{"options": []}', CONFINED),
        ("[[[[", CONFINED),
        (None, CONFINED),
    ],
)
def test_a_build_says_its_own(record: str | None, expected: str, tmp_path: Path) -> None:
    if record is not None:
        (tmp_path / of_tvm._RECORD).write_text(record)
    assert compiles("tvm")
    assert backend("tvm").reach({"built": str(tmp_path)}) == expected


def test_the_record_is_what_a_build_writes() -> None:
    from conrepair.formats.tvm.options import BUILD

    assert of_tvm._RECORD == BUILD


def test_which_jobs_run_on_a_gpu(gpu: None) -> None:
    assert {kind for kind in jobs() if reach_of(kind, device=GPU) == GPU} == {
        *("compile", "execute", "localize", "probe_gpu", "repair"),
        *("accuracy", "answers", "fuzz_recheck", "fuzz_reduce", "fuzz_screen", "fuzz_try"),
        *("kernels", "switches", "trace"),
    }
    assert {kind for kind in JOBS if reach_of(kind, device=NETWORK) == NETWORK} == {"compile", "execute"}
    assert reach_of("build", device=GPU) == OPEN


def test_where_there_is_no_gpu_nothing_reaches_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then kernels of OpenCL run on the processor, in the worker that there is already."""
    monkeypatch.setattr(job_table, "gpu_devices", list)
    assert reach_of("compile", device=GPU) == CONFINED

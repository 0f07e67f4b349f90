"""What `doctor` says works was tried; what it can't know it doesn't say."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from conrepair.application.cli.commands import doctor as doctors
from conrepair.application.cli.commands.doctor import DoctorLine, doctor
from conrepair.application.jobs import gpu_probes
from conrepair.application.jobs.gpu_probes import GPU_PROBES, probe_gpu
from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.ground.runtime.outside.environments import ENVIRONMENTS, PINNED_PYTHON, MadeEnvironment
from conrepair.ground.runtime.processes.confinement import GPU
from conrepair.ground.runtime.processes.workers import Failure, Job, Success, Workers


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs that it gave to workers, which found what it asks for."""
    jobs: list[Job] = []

    def call(self: Workers, job: Job) -> Success | Failure:
        jobs.append(job)
        if job.payload["name"] == "torchvision":
            return Failure("exception", "ImportError", "libjpeg isn't there")
        return Success(("works", "seen") if job.function == "probe_gpu" else "seen", 0.1)

    monkeypatch.setattr(Workers, "call", call)
    return jobs


AS_JSON = argparse.Namespace(format="json", quiet=True, verbose=False)


def found(capsys: pytest.CaptureFixture[str], code: int = 1) -> dict[str, dict[str, Any]]:
    assert doctor(AS_JSON) == code
    return {item["what"]: item for item in json.loads(capsys.readouterr().out)}


def test_works_is_what_was_tried(workers: list[Job], capsys: pytest.CaptureFixture[str]) -> None:
    lines = found(capsys)
    tried = {job.payload["name"] for job in workers if job.function == "probe"}
    for name, line in lines.items():
        backend = name.removeprefix("backend ")
        backend = {"inductor": "torch", "xla": "tensorflow"}.get(backend, backend)
        if line["state"] == "works":
            assert name in tried | {"python", "confinement", "disk"} or backend in tried or name.startswith("gpu ")
    assert lines["torchvision"]["state"] == "fails"
    assert lines["converter onnx-float16"]["state"] == "installed"
    assert (lines["torch"]["works"], lines["torch"]["missing"]) == (True, False)


@pytest.mark.parametrize(
    ("version", "made", "state", "words"),
    [
        (PINNED_PYTHON, False, "not made", "conrepair environments make"),
        (PINNED_PYTHON, True, "installed", ""),
        ((3, 99), False, "can't be made", "pinned for Python 3.11, and this is 3.99"),
    ],
)
def test_converters_are_as_their_environments(
    version: tuple[int, int],
    made: bool,
    state: str,
    words: str,
    workers: list[Job],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        doctors, "find_environment", lambda _: MadeEnvironment(Path("/e"), 2.0, 1.0) if made else None
    )
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    lines = found(capsys)
    names = [f"environment {name}" for name in ENVIRONMENTS]
    names += [f"converter {item.name}" for item in CONVERTERS.values() if item.environment is not None]
    assert len(names) > len(ENVIRONMENTS)
    for name in names:
        assert lines[name]["state"] == state, name
        assert words in lines[name]["remedy"], name


def test_a_screen_has_a_line_for_each_sort_and_the_rest_is_asked_for(
    workers: list[Job], capsys: pytest.CaptureFixture[str]
) -> None:
    told = argparse.Namespace(format="text", quiet=True, verbose=False)
    assert doctor(told) == 1
    short = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:1].strip()]
    assert {"converters", "backends", "environments", "extras", "torchvision"} <= set(short)
    assert not {"converter", "backend"} & set(short)
    assert len(short) < 35
    told.verbose = True
    assert doctor(told) == 1
    names = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("converter ")]
    assert set(CONVERTERS.own) <= set(names)


@pytest.mark.parametrize(
    ("state", "colour"),
    [("works", "green"), ("installed", "default"), ("not made", "yellow"), ("fails", "bold red")],
)
def test_the_colour_is_that_of_the_state(state: str, colour: str) -> None:
    assert DoctorLine("x", state, "").mark == f"[{colour}]{state}[/]"


def test_gpus_are_asked_for_where_they_are_used(workers: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    from conrepair.application.engine import job_table

    monkeypatch.setattr(job_table, "gpu_devices", lambda: ["/dev/nvidia0"])
    doctor(AS_JSON)
    asked = {job.payload["name"]: job.reach for job in workers if job.function == "probe_gpu"}
    assert asked == dict.fromkeys(GPU_PROBES, GPU)


class _Driver:
    """What a driver's library answers."""

    def __init__(self, code: int) -> None:
        self.code = code

    def cuInit(self, flags: int) -> int:  # noqa: N802 (it's called so)
        return self.code

    def cuGetErrorString(self, code: int, text: Any) -> int:  # noqa: N802
        text._obj.value = b"OS call failed or operation not supported on this OS"
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = 1
        return 0

    def cuDeviceGetName(self, words: Any, size: int, number: int) -> int:  # noqa: N802
        words.value = b"NVIDIA H200"
        return 0


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (0, ("works", "NVIDIA H200")),
        (304, ("fails", "cuInit gives 304: OS call failed or operation not supported on this OS")),
    ],
)
def test_a_driver_that_does_not_start_says_why(
    code: int, answer: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_probes.ctypes, "CDLL", lambda name: _Driver(code))
    assert probe_gpu(tmp_path, "driver") == answer


@pytest.mark.filterwarnings("ignore:Specified provider")  # as somebody's who has it, and no GPU
def test_a_provider_that_reaches_nothing_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    answer = probe_gpu(tmp_path, "onnxruntime")
    assert answer[0] == "missing"
    assert answer[1].startswith("CUDAExecutionProvider: ")


def test_a_runtime_of_tvm_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    (tmp_path / "libtvm_runtime_cuda.so").write_bytes(b"no library")
    (tmp_path / "libtvm_runtime.so").write_bytes(b"no library")
    [reason] = gpu_probes._broken_runtimes(tmp_path)
    assert reason.startswith("cuda (")

"""A build for a GPU is made, run and looked into by workers that reach it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small_models as small

from conrepair.application.cli import main
from conrepair.application.engine import job_table
from conrepair.formats.tvm.opencl_run import find_device
from conrepair.ground.runtime.errors import DeviceError
from conrepair.ground.runtime.processes.confinement import CONFINED, GPU
from conrepair.ground.runtime.processes.workers import Job, Lane, Workers


@pytest.fixture
def reaches(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """How far jobs reach, by their kind, on a machine with a GPU; PoCL stands in for its driver."""
    try:
        find_device()
    except DeviceError as error:
        pytest.skip(str(error))
    found: dict[str, set[str]] = {}
    start = Workers.start

    def noted(self: Workers, lane: Lane, job: Job) -> Any:
        found.setdefault(job.function, set()).add(job.reach)
        return start(self, lane, job)

    monkeypatch.setattr(job_table, "gpu_devices", lambda: ["/dev/nvidia0"])
    monkeypatch.setattr(Workers, "start", noted)
    return found


def test_by_the_target(reaches: dict[str, set[str]], tmp_path: Path) -> None:
    net = str(small.onnx_convnet(tmp_path / "net.onnx"))
    assert main(["execute", net, "--backend", "tvm", "--target", "opencl", "--opt", "O0", "-q"]) == 0
    assert reaches.pop("compile") == {GPU}
    assert reaches.pop("execute") == {CONFINED, GPU}, "the model's own library runs on the processor"
    assert set().union(*reaches.values()) == {CONFINED}


def test_by_what_a_build_was_made_for(reaches: dict[str, set[str]], tmp_path: Path) -> None:
    net, built = str(small.onnx_convnet(tmp_path / "net.onnx")), str(tmp_path / "build")
    assert main(["build", net, "--target", "opencl", "-q", "-o", built]) == 0
    assert reaches == {"describe": {CONFINED}, "compile": {GPU}}
    reaches.clear()
    assert main(["localize", net, built, "-q", "--samples", "2"]) == 0
    assert reaches["localize"] == reaches["compile"] == {GPU}

"""Workers that need a GPU start it; others don't."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import gpu_jobs
import pytest
from job_tables import jobs_of

from conrepair.ground.runtime import gpu_devices
from conrepair.ground.runtime.processes.confinement import CONFINED, GPU, NETWORK, within_reach
from conrepair.ground.runtime.processes.workers import Job, Success, Workers

_SOURCE = Path(__file__).parents[2] / "support" / "stand_in_cuda.c"
_OPERATING_SYSTEM = 304  # CUDA_ERROR_OPERATING_SYSTEM, which cuInit gave in confined workers


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that does what a driver's does."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there's no C compiler")
    library = tmp_path_factory.mktemp("driver") / "libstandin.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-pthread", "-o", str(library), str(_SOURCE)], check=True)
    return library


@pytest.mark.workers
@pytest.mark.timeout(60)
@pytest.mark.skipif(not within_reach(CONFINED).full, reason="workers aren't confined here")
@pytest.mark.parametrize(("reach", "code"), [(GPU, 0), (CONFINED, _OPERATING_SYSTEM), (NETWORK, _OPERATING_SYSTEM)])
def test_a_driver_starts_where_a_gpu_is_needed(reach: str, code: int, driver: Path, tmp_path: Path) -> None:
    with Workers(1, jobs=jobs_of(gpu_jobs), folders=(tmp_path,)) as workers:
        (tmp_path / "job").mkdir()
        done = workers.call(Job("start", {"library": str(driver)}, tmp_path / "job", reach=reach))
        lane = workers.idle_lane(frozenset(), reach)
        assert lane is not None
        assert lane.process is not None
        assert lane.process.holds == within_reach(reach)
    assert isinstance(done, Success), done
    assert done.value == {"code": code}


def test_devices_are_those_of_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["nvidia0", "nvidia12", "nvidiactl", "nvidia-uvm", "kfd", "dri/renderD128"]
    others = ["nvidia-modeset", "dri/card0", "sda", "tty", "kvm"]
    (tmp_path / "dri").mkdir()
    for name in names + others:
        (tmp_path / name).touch()
    monkeypatch.setattr(gpu_devices, "_DEVICES", tmp_path)
    assert {os.path.relpath(path, tmp_path) for path in gpu_devices.gpu_devices()} == set(names)

"""Nothing that a worker started outlives it, whichever way that ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import killing
import pytest
import worker_jobs
from job_tables import jobs_of

from conrepair.ground.runtime.processes.confinement import CONFINED, OPEN
from conrepair.ground.runtime.processes.workers import Failure, Job, Success, Workers

JOBS = jobs_of(worker_jobs)
pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.workers,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to whom asks for them"),
]
reaches = pytest.mark.parametrize(
    ("reach", "imports"), [(CONFINED, None), (OPEN, None), (CONFINED, {})], ids=["confined", "open", "forked"]
)


def ended(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def detach(workers: Workers, folder: Path, reach: str) -> int:
    (folder / "job").mkdir()
    outcome = workers.call(Job("detach", {}, folder / "job", reach=reach))
    assert isinstance(outcome, Success), outcome
    assert not ended(outcome.value["pid"])
    return outcome.value["pid"]


@reaches
def test_a_grandchild_ends_with_the_command(reach: str, imports: dict[str, Any] | None, tmp_path: Path) -> None:
    with Workers(1, jobs=JOBS, imports=imports) as workers:
        orphan = detach(workers, tmp_path, reach)
    assert ended(orphan)


@reaches
@pytest.mark.parametrize("end", ["exit_at_once", "hang"])
def test_a_grandchild_ends_with_the_worker(
    end: str, reach: str, imports: dict[str, Any] | None, tmp_path: Path
) -> None:
    """That died, or was ended for its time."""
    with Workers(1, jobs=JOBS, imports=imports) as workers:
        orphan = detach(workers, tmp_path, reach)
        payload = {"code": 7}
        outcome = workers.call(Job(end, payload, tmp_path / "job", timeout=1.0, reach=reach))
        assert isinstance(outcome, Failure), outcome
        killing.wait_until(lambda: ended(orphan), 10)


@pytest.mark.parametrize("everybody", [True, False])
@reaches
def test_a_grandchild_ends_with_a_killed_main_process(
    reach: str, imports: dict[str, Any] | None, everybody: bool, tmp_path: Path
) -> None:
    program = f"""
import sys
from pathlib import Path
from conrepair.ground.runtime.processes.workers import Job, Workers

folder = Path(sys.argv[1]) / "job"
folder.mkdir()
job = Job("detach", {{"then": "hang"}}, folder, reach={reach!r})
Workers(1, jobs={{"detach": "worker_jobs:detach"}}, folders=[folder], imports={imports!r}).call(job)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )
    noted = tmp_path / "job" / "pid"
    killing.wait_until(lambda: noted.exists() and noted.read_text() != "", 30)
    orphan = int(noted.read_text())
    assert not ended(orphan)
    killing.kill(process, everybody=everybody)
    killing.wait_until(lambda: ended(orphan), 10)


def test_elsewhere_a_worker_looks_for_its_parent_itself() -> None:
    """Other systems give nobody orphans; as on one of them, with a parent that isn't there."""
    program = (
        "import sys, time; sys.platform = 'darwin'; "
        "from conrepair.ground.runtime.processes.supervisor import supervised; "
        "supervised(0, 0, 1); print('goes on', flush=True); time.sleep(30)"
    )
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=25, check=False, env=variables
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout in {"goes on\n", ""}

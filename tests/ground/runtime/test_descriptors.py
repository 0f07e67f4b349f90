"""What runs commands one after another has no more files open after them than before."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import small_models as small
import worker_jobs
from job_tables import jobs_of

import conrepair
from conrepair.ground.runtime.processes.process import WorkerDied
from conrepair.ground.runtime.processes.workers import Failure, Job, Success, Workers

JOBS = jobs_of(worker_jobs)
pytestmark = [
    pytest.mark.workers,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which files a process has open"),
]


def opened() -> dict[str, int]:
    """How many descriptors of this process are of each file, and of pipes and sockets, each together."""
    links = [*Path("/proc/self/fd").iterdir()]
    return Counter(str(link.readlink()).partition(":[")[0] for link in links if link.is_symlink())


@pytest.fixture
def _uncollected() -> Iterator[None]:
    """Nothing is freed but what nobody refers to: when a collector comes is chance."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.onnx_convnet(tmp_path_factory.mktemp("net") / "net.onnx")


@pytest.mark.usefixtures("_uncollected")
@pytest.mark.parametrize("verb", ["compare", "localize", "inspect", "execute"])
def test_a_verb_leaves_none_open_in_this_process(verb: str, net: Path) -> None:
    arguments: tuple[Path, ...] = (net, net) if verb in {"compare", "localize"} else (net,)
    call: Callable[..., Any] = getattr(conrepair, verb)
    call(*arguments, in_process=True)
    before = opened()
    for _ in range(2):
        call(*arguments, in_process=True)
    assert opened() == before


@pytest.mark.usefixtures("_uncollected")
@pytest.mark.parametrize("imports", [None, {}], ids=["fresh", "forked"])
@pytest.mark.parametrize(("job", "payload"), [("exit_at_once", {"code": 7}), ("hang", {})])
def test_a_worker_that_ends_leaves_none_open(
    job: str, payload: dict[str, int], imports: dict[str, Any] | None, tmp_path: Path
) -> None:
    """That died, or was ended for its time."""

    def run() -> None:
        outcome = workers.call(Job(job, payload, folder, timeout=0.1))
        assert isinstance(outcome, Failure), outcome

    (folder := tmp_path / "job").mkdir()
    with Workers(1, jobs=JOBS, imports=imports) as workers:
        run()
        before = opened()
        run()
        assert opened() == before


@pytest.mark.usefixtures("_uncollected")
def test_workers_that_are_left_have_none_open(tmp_path: Path) -> None:
    (folder := tmp_path / "job").mkdir()
    before = opened()
    with Workers(1, jobs=JOBS) as workers:
        outcome = workers.call(Job("echo", {}, folder))
        assert isinstance(outcome, Success), outcome
    assert opened() == before


@pytest.mark.usefixtures("_uncollected")
@pytest.mark.parametrize("imports", [None, {}], ids=["fresh", "forked"])
def test_workers_that_are_left_at_work_have_none_open(imports: dict[str, Any] | None, tmp_path: Path) -> None:
    """As by an interruption: the answer that somebody waits for is that the worker is gone."""
    (folder := tmp_path / "job").mkdir()
    before = opened()
    with Workers(1, jobs=JOBS, imports=imports) as workers:
        lane = workers.idle_lane(frozenset())
        assert lane is not None
        answer = workers.start(lane, Job("hang", {}, folder))
    assert opened() == before
    assert isinstance(answer.exception(), WorkerDied)

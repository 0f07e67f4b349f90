"""Each of many ways out of a confined worker is refused, does nothing, or is named as open in docs/security.md."""

from __future__ import annotations

import contextlib
import os
import pty
import resource
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import attempting_jobs
import pytest
from attempts import ATTEMPTS, OPEN, REFUSED, SILENT
from job_tables import jobs_of

from conrepair.ground.runtime.processes import landlock
from conrepair.ground.runtime.processes.confinement import CONFINED, GPU, within_reach
from conrepair.ground.runtime.processes.workers import Job, Success, Workers

SECURITY = Path(__file__).parents[3] / "docs" / "security.md"
pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.workers,
    pytest.mark.skipif(not within_reach(CONFINED).network, reason="this kernel filters no calls (seccomp)"),
]


def test_there_are_as_many_as_were_tried_first() -> None:
    assert len(ATTEMPTS) > 101
    assert len({attempt.what for attempt in ATTEMPTS}) == len(ATTEMPTS)


@dataclass(frozen=True)
class Surroundings:
    """What attempts are made on."""

    payload: dict[str, Any]
    victim: Path
    process: int

    def state(self) -> dict[str, Any]:
        """All that mustn't change."""
        status = self.victim.stat()
        attributes = {}
        with contextlib.suppress(OSError):
            attributes = {name: os.getxattr(self.victim, name) for name in os.listxattr(self.victim)}
        return {
            "file": (status.st_mode, status.st_uid, status.st_gid, status.st_size, status.st_ino, status.st_nlink),
            "text": self.victim.read_text(),
            "attributes": attributes,
            "folder": sorted(path.name for path in self.victim.parent.iterdir()),
            "limits": resource.prlimit(self.process, resource.RLIMIT_CPU),
            "priorities": (os.getpriority(os.PRIO_PROCESS, self.process), os.getpriority(os.PRIO_PROCESS, 0)),
            "processors": os.sched_getaffinity(self.process),
            "scheduler": os.sched_getscheduler(self.process),
        }


@pytest.fixture
def surroundings(tmp_path: Path) -> Iterator[Surroundings]:
    outside = tmp_path / "outside"
    (outside / "empty").mkdir(parents=True)
    victim = outside / "victim"
    victim.write_text("whole")
    with contextlib.suppress(OSError):  # a file system without them
        os.setxattr(victim, "user.kept", b"x")
    os.mkfifo(outside / "pipe")
    master, terminal = pty.openpty()
    os.write(master, b"typed\n")
    name = f"conrepair-{os.getpid()}"
    with (
        (outside / "pipe").open("r+b", buffering=0) as pipe,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as stream,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
        socket.socket(socket.AF_UNIX) as abstract,
        subprocess.Popen(["sleep", "60"], start_new_session=True) as process,
    ):
        pipe.write(b"text")
        stream.bind(str(outside / "stream"))
        datagrams.bind(str(outside / "datagrams"))
        abstract.bind(f"\0{name}")
        stream.listen()
        abstract.listen()
        yield Surroundings(
            {
                "outside": str(outside),
                "process": process.pid,
                "port": server.getsockname()[1],
                "stream": str(outside / "stream"),
                "datagrams": str(outside / "datagrams"),
                "abstract": name,
                "terminal": os.ttyname(terminal),
            },
            victim,
            process.pid,
        )
        process.kill()
    os.close(master)
    os.close(terminal)


@pytest.mark.parametrize("reach", [CONFINED, GPU])
def test_no_way_out(reach: str, surroundings: Surroundings, tmp_path: Path) -> None:
    own = tmp_path / "own" / "job"
    own.mkdir(parents=True)
    before = surroundings.state()
    with Workers(1, jobs=jobs_of(attempting_jobs), folders=(own.parent,)) as workers:
        done = workers.call(Job("attempt_all", surroundings.payload, own, reach=reach))
    assert isinstance(done, Success), done
    wrong = {}
    for attempt, became in zip(ATTEMPTS, done.value["outcomes"], strict=True):
        expected = (attempt.by_gpus if reach == GPU else "") or attempt.expected
        wanted = REFUSED if expected == REFUSED else "done"
        if became != wanted and attempt.landlock <= landlock.version():
            wrong[attempt.what] = became
    assert wrong == {}
    assert surroundings.state() == before, "what said that all was well did nothing"


def test_what_is_open_is_named() -> None:
    text = SECURITY.read_text(encoding="utf-8")
    for attempt in ATTEMPTS:
        if attempt.expected not in {REFUSED, SILENT}:
            assert attempt.expected.removeprefix(OPEN) in text, attempt.what

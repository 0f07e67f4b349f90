"""What a job leaves for the next one in its process."""

from __future__ import annotations

from pathlib import Path

import pytest

from conrepair.ground.runtime.handing_on import leave, take
from conrepair.ground.runtime.processes.executor import InProcess
from conrepair.ground.runtime.processes.workers import Job

JOBS = {name: f"{__name__}:{name}" for name in ("first", "other", "second")}


def first(folder: Path) -> bool:
    leave("second", object())
    return take("first") is not None


def other(folder: Path) -> bool:
    return take("other") is not None


def second(folder: Path) -> bool:
    return take("second") is not None


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["first", "second", "second"], [False, True, False]),
        (["first", "other", "second"], [False, False, False]),
        (["first", "first", "second"], [False, False, True]),
    ],
)
def test_the_next_job_of_its_name_finds_it(names: list[str], found: list[bool], tmp_path: Path) -> None:
    with InProcess(JOBS) as here:
        jobs = [here.start(here, Job(name, {}, tmp_path, frozenset(), 1.0)) for name in names]
        assert [here.outcome(here, None, job).value for job in jobs] == found


def test_nothing_is_left_behind_the_executor(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with InProcess(JOBS) as here:
            done = here.outcome(here, None, here.start(here, Job(name, {}, tmp_path, frozenset(), 1.0)))
    assert done.value is False

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from conrepair.application.engine.job_table import JOBS
from conrepair.ground.runtime.processes.workers import NO_LIBRARY, Failure, Job, Success, Workers
from conrepair_crowd import there
from conrepair_crowd.blobs import Blobs
from conrepair_crowd.cluster import Cluster
from conrepair_crowd.executor import Crowd


class Slow:
    """A cluster of which less is known than there is: workers by their addresses, and which has the library."""

    def __init__(self, known: Collection[str], there_are: Mapping[str, bool]) -> None:
        self.workers = {address: {"name": address, "nthreads": 1} for address in known}
        self._there_are = there_are

    def asked(self) -> Mapping[str, Any]:
        return {address: {"name": address, "nthreads": 1} for address in self._there_are}

    def done(self, _: str, __: Any, ___: Any, without: Collection[str]) -> Mapping[str, Any]:
        address = next(item for item in self._there_are if item not in without)
        own = {"worker": address, "address": address}
        if self._there_are[address]:
            return (
                there.nothing(Failure("", "", "")) | {"kind": "success", "fields": {"value": 1, "seconds": 0}} | own
            )
        return there.nothing(Failure(NO_LIBRARY, "MissingLibraryError", "none here")) | own


@pytest.mark.parametrize("known", [["right"], ["new"], ["gone"]])
def test_one_that_has_just_come_and_lacks_a_library_ends_no_job(known: list[str], tmp_path: Path) -> None:
    cluster = Slow(known, {"new": False, "newer": False, "right": True})
    with Workers(1, jobs=JOBS) as here:
        crowd = Crowd(cast(Cluster, cluster), Blobs(str(tmp_path / "exchange")), here, None)
        (folder := tmp_path / "job").mkdir()
        job = Job("describe", {}, folder)
        lane = crowd.idle_lane(job.needs)
        assert isinstance(crowd.outcome(lane, job, crowd.start(lane, job)), Success)
        assert crowd.again == 2


def test_where_nobody_has_it_all_names_are_said(tmp_path: Path) -> None:
    cluster = Slow(["one"], {"one": False, "two": False})
    with Workers(1, jobs=JOBS) as here:
        crowd = Crowd(cast(Cluster, cluster), Blobs(str(tmp_path / "exchange")), here, None)
        (folder := tmp_path / "job").mkdir()
        job = Job("describe", {}, folder)
        lane = crowd.idle_lane(job.needs)
        failed = crowd.outcome(lane, job, crowd.start(lane, job))
    assert isinstance(failed, Failure)
    assert failed.message.startswith("one, two: none here")

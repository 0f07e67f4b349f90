"""For a worker's `--preload`: jobs of tests beside those that there are."""

from __future__ import annotations

from typing import Any

import worker_jobs
from job_tables import jobs_of

from conrepair_crowd import there


def dask_setup(worker: Any) -> None:
    there.JOBS = {**there.JOBS, **jobs_of(worker_jobs)}

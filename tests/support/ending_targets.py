"""The job that tries a target, which ends its process at one setting: jobs are found by module and name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any
from unittest import mock

from conrepair.ground.runtime.typed import call
from conrepair_lab.campaigns import narrowing_jobs

KILLS, HANGS = 2, 4


def narrow(folder: Path, **payload: Any) -> Any:
    """As `narrowing_jobs.narrow`, of a target that ends at two settings."""
    refusal = narrowing_jobs._refusal

    def ending(*arguments: Any) -> str | None:
        tried = (Path(payload["journal"]) / f"tried{payload['whose']}").read_text(encoding="utf-8")
        if tried == str(KILLS):
            os.kill(os.getpid(), signal.SIGSEGV)
        if tried == str(HANGS):
            time.sleep(600)
        return refusal(*arguments)

    with (
        mock.patch.object(narrowing_jobs, "_refusal", ending),
        mock.patch.object(narrowing_jobs, "_FIRST_SECONDS", 0),
    ):
        return call(narrowing_jobs.narrow, payload, folder)

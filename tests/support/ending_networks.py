"""The job that makes networks, with some that end their worker: jobs are found by module and name."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any
from unittest import mock

from conrepair.ground.runtime.typed import call
from conrepair_lab.campaigns import generate_jobs
from conrepair_lab.generate import generated
from conrepair_lab.generate import generated as blocks

KILLS, HANGS, OPTIMIZED_KILLS, FAILS = 2, 3, 5, 6


def generate(folder: Path, **payload: Any) -> Any:
    """As `generate_jobs.generate`; what is drawn is the same."""
    made, optimized = blocks.made, generated.optimized

    def at() -> Any:
        return json.loads((folder / generate_jobs.AT).read_text(encoding="utf-8"))

    def ending_made(*arguments: Any) -> Any:
        if at() == KILLS:
            os.kill(os.getpid(), signal.SIGSEGV)
        if at() == HANGS:
            time.sleep(600)
        if at() == FAILS:
            raise LookupError("of ours")
        return made(*arguments)

    def ending_optimized(*arguments: Any) -> Any:
        if at() == OPTIMIZED_KILLS:
            os.kill(os.getpid(), signal.SIGSEGV)
        return optimized(*arguments)

    with mock.patch.object(blocks, "made", ending_made), mock.patch.object(generated, "optimized", ending_optimized):
        return call(generate_jobs.generate, payload, folder)

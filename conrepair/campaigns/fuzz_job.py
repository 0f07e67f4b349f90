"""A job of a campaign: where its system can run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.engine.job_table import reach_of
from conrepair.runtime.files import make_folder
from conrepair.runtime.workers import Job
from conrepair.systems.registry import entry

_START = 180.0  # more seconds than for its networks, each of which has a limit of its own: libraries are imported


def fuzz_job(kind: str, name: str, payload: Mapping[str, Any], folder: Path, seconds: float) -> Job:
    """A job of one system, and its folder.

    Args:
        kind: As in the table of jobs.
        name: Of the system and its setting.
        payload: Besides that.
        folder: Is made.
        seconds: That its work may take.
    """
    asked = entry(name)
    make_folder(folder)
    return Job(
        kind,
        {"entry": name, **payload},
        folder,
        asked.runs.needs(asked.chosen),
        seconds + _START,
        reach_of(kind, device=asked.chosen.reach),
        asked.runs.environment(asked.chosen),
    )

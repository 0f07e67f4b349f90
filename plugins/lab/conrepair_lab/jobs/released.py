"""The job that runs a model in another release of a backend's library."""

from __future__ import annotations

import tempfile
from pathlib import Path

from conrepair.application.jobs.description import of_what_stays
from conrepair.application.jobs.execution import executed
from conrepair.application.jobs.values import RunRecord, RunRequest
from conrepair.formats.models.model import Model
from conrepair_lab.systems.registry import released


@of_what_stays
def execute_released(folder: Path, model: Model, request: RunRequest) -> RunRecord:
    """As `execute`, of what runs in an environment of its own.

    Args:
        folder: As of `execute`.
        model: As of `execute`.
        request: As of `execute`; the backend's options name the release.
    """
    asked = released(request.backend, request.options)
    if asked is None:
        raise ValueError("no release is named")
    with tempfile.TemporaryDirectory(dir=folder) as made:
        sized = asked.system.sized(model, request.batch_size, Path(made))
        return executed(folder, model, request, asked.system.open(sized, asked.setting, Path(made)))

"""The job that runs a model in another release of a backend's library."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from conrepair.frameworks.model import Model
from conrepair.frameworks.runnable import Runnable
from conrepair.jobs.models import executed
from conrepair.systems.registry import released


def execute_released(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """As `execute`, of what runs in an environment of its own.

    Args:
        payload: As of `execute`; the backend's options name the release.
        folder: As of `execute`.

    Returns:
        As of `execute`.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:

        def load(model: Model) -> Runnable:
            asked = released(payload["backend"], payload["options"])
            if asked is None:
                raise ValueError("no release is named")
            sized = asked.system.sized(model, payload["batch_size"], Path(made))
            return asked.system.open(sized, asked.setting, Path(made))

        return executed(payload, folder, load)

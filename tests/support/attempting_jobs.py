"""A job that tries what `attempts` lists."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from attempts import ATTEMPTS, Around, outcome

Payload = dict[str, Any]


def attempt_all(folder: Path, **payload: Any) -> Payload:
    """What became of each, in order."""
    around = Around(**payload | {"outside": Path(payload["outside"]), "own": folder, "supervisor": os.getppid()})
    return {"outcomes": [outcome(attempt, around) for attempt in ATTEMPTS]}

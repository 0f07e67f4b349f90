"""What workers do for accuracy tables: measure the operators of one system."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from conrepair.accuracy.sweep import measure
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Model, from_json
from conrepair.frameworks.runnable import Runnable
from conrepair.report.encode import encode
from conrepair.systems.registry import SYSTEMS
from conrepair.systems.system import Setting


def accuracy(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Measure operators.

    Args:
        payload: "name", "system", "setting", "dtype", "families", "operators" (empty: all).
        folder: For files.

    Returns:
        "measured" (`conrepair.accuracy.measured.Measured`s), "seconds".
    """
    system, setting = SYSTEMS[payload["system"]], from_json(Setting, payload["setting"])
    started = time.perf_counter()

    def opened(path: Path) -> Runnable:
        made = Path(tempfile.mkdtemp(dir=room))
        return system.open(Model("onnx", str(path), model_sha256(path)), setting, made)

    with tempfile.TemporaryDirectory(dir=folder) as room:
        found = measure(
            opened, payload["dtype"], payload["families"], system=payload["name"], operators=payload["operators"]
        )
    return {"measured": encode(found), "seconds": time.perf_counter() - started}

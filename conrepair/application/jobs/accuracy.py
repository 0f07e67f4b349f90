"""What workers do for accuracy tables: measure the operators of one system."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.laboratory.accuracy.measured import Measured
from conrepair.laboratory.accuracy.sweep import measure
from conrepair.laboratory.systems.registry import entry


def accuracy(
    folder: Path, name: str, dtype: str, operators: tuple[str, ...] = ()
) -> tuple[tuple[Measured, ...], float]:
    """Measure operators; and seconds that it took.

    Args:
        folder: For files.
        name: Of the system and its setting.
        dtype: Element type.
        operators: Which; none: all.
    """
    asked = entry(name)
    started = time.perf_counter()

    def opened(path: Path) -> Runnable:
        made = Path(tempfile.mkdtemp(dir=room))
        return asked.runs.open(Model("onnx", str(path), model_sha256(path)), asked.chosen, made)

    with tempfile.TemporaryDirectory(dir=folder) as room:
        found = measure(opened, dtype, system=name, operators=operators)
    return tuple(found), time.perf_counter() - started

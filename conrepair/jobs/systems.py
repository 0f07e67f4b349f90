"""What workers do with a system: say its switches, and run inputs with some of them off."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.frameworks.model import Model, from_json
from conrepair.frameworks.runnable import Array, Runnable
from conrepair.intake.data import write_arrays
from conrepair.report.encode import encode
from conrepair.runtime.errors import SourceChangedError
from conrepair.runtime.files import sha256_of
from conrepair.systems.registry import SYSTEMS
from conrepair.systems.system import Setting

_RUNS = 5  # of which the median is how long one takes


def answers(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run a model by a system, sample by sample.

    Args:
        payload: "model" (an ONNX file), "system", "setting", "given" (an .npz file, an array of samples by input),
            "sha256" (of that).
        folder: Receives `outputs.npz`, an array of samples by output.

    Returns:
        "seconds" that a run takes.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        return _answered(payload, Path(made), folder)


def _answered(payload: dict[str, Any], made: Path, folder: Path) -> dict[str, Any]:
    model, setting = from_json(Model, payload["model"]), from_json(Setting, payload["setting"])
    runnable = SYSTEMS[payload["system"]].open(model, setting, made)
    if sha256_of(Path(payload["given"])) != payload["sha256"]:
        raise SourceChangedError(f"{payload['given']} was changed while it was read. Run the command again.")
    with np.load(payload["given"]) as file:
        samples = {spec.name: file[spec.name] for spec in runnable.inputs}
    count = len(next(iter(samples.values())))
    found = [runnable.run({name: rows[place] for name, rows in samples.items()}) for place in range(count)]
    write_arrays(folder / "outputs.npz", {name: np.stack([item[name] for item in found]) for name in found[0]})
    first = {name: rows[0] for name, rows in samples.items()}
    return {"seconds": run_seconds(runnable, first)}


def switches(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Say what a system does with a model that it can be told to leave out.

    Args:
        payload: "model", "system", "setting".
        folder: For files.

    Returns:
        "switches", in order.
    """
    model, setting = from_json(Model, payload["model"]), from_json(Setting, payload["setting"])
    with tempfile.TemporaryDirectory(dir=folder) as made:
        found = SYSTEMS[payload["system"]].switches(model, setting, Path(made))
    return {"switches": [encode(item) for item in found]}


def run_seconds(runnable: Runnable, feeds: Mapping[str, Array]) -> float:
    """How long a run takes, the median of several."""
    times = []
    for _ in range(_RUNS):
        started = time.perf_counter()
        runnable.run(feeds)
        times.append(time.perf_counter() - started)
    return float(np.median(times))

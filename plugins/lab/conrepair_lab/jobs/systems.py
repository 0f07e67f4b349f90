"""What workers do with a system: say its switches, and run inputs with some of them off."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

from conrepair.formats.backends.base import Switch
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Array, Runnable
from conrepair.ground.intake.data import write_arrays
from conrepair.ground.runtime.errors import SourceChangedError
from conrepair.ground.runtime.files.whole import HashedPath, sha256_of
from conrepair.verdicts.truth.agreement import agreed
from conrepair.verdicts.truth.referees import OnnxReference, OnnxRuntime, PyTorch
from conrepair_lab.accuracy.measured import Measured
from conrepair_lab.accuracy.sweep import measure
from conrepair_lab.jobs.trace_values import JudgedSample, Refereed
from conrepair_lab.systems.registry import SYSTEMS, entry
from conrepair_lab.systems.system import Chosen


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


def referees(folder: Path, model: Model, sample: JudgedSample) -> Refereed:
    """Ask all referees for a sample.

    Args:
        folder: For files.
        model: An ONNX file.
        sample: Which.
    """
    eager = entry("torch-eager")
    with tempfile.TemporaryDirectory(dir=folder) as made:

        def converted(asked: onnx.ModelProto) -> Model:
            path = Path(made) / "asked.onnx"
            onnx.save(asked, path)
            return eager.runs.converted(Model("onnx", str(path), model_sha256(path)), eager.chosen, Path(made))

        proto = onnx.load(model.path)  # with weights that lie beside it
        found = agreed([OnnxReference(), PyTorch(converted), OnnxRuntime()], proto, sample.feeds)
    apart = [item for item in found.disagreements if item.bounds > 1]
    doubted: dict[str, float] = {}
    for item in apart:
        doubted[item.tensor] = max(doubted.get(item.tensor, 0.0), 1 + item.bounds)
    return Refereed(tuple(found.referees), tuple(map(str, apart)), doubted)


_RUNS = 5  # of which the median is how long one takes


def answers(folder: Path, model: Model, chosen: Chosen, given: HashedPath) -> float:
    """Run a model by a system, sample by sample.

    Args:
        folder: Receives `outputs.npz`, an array of samples by output.
        model: An ONNX file.
        chosen: The system.
        given: An .npz file, an array of samples by input.

    Returns:
        Seconds that a run takes.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        runnable = SYSTEMS[chosen.system].open(model, chosen.setting, Path(made))
        arrays = given_arrays(given)
        samples = {spec.name: arrays[spec.name] for spec in runnable.inputs}
        count = len(next(iter(samples.values())))
        found = [runnable.run({name: rows[place] for name, rows in samples.items()}) for place in range(count)]
        write_arrays(folder / "outputs.npz", {name: np.stack([item[name] for item in found]) for name in found[0]})
        return run_seconds(runnable, {name: rows[0] for name, rows in samples.items()})


def given_arrays(given: HashedPath) -> dict[str, Array]:
    """The arrays of a file that a job is given.

    Args:
        given: An .npz file.

    Raises:
        SourceChangedError: if it was changed since.
    """
    if sha256_of(Path(given.path)) != given.sha256:
        raise SourceChangedError(f"{given.path} was changed while it was read. Run the command again.")
    with np.load(given.path) as file:
        return dict(file)


def switches(folder: Path, model: Model, chosen: Chosen) -> tuple[Switch, ...]:
    """Say what a system does with a model that it can be told to leave out, in order.

    Args:
        folder: For files.
        model: An ONNX file.
        chosen: The system.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        return tuple(SYSTEMS[chosen.system].switches(model, chosen.setting, Path(made)))


def run_seconds(runnable: Runnable, feeds: Mapping[str, Array]) -> float:
    """How long a run takes, the median of several."""
    times = []
    for _ in range(_RUNS):
        started = time.perf_counter()
        runnable.run(feeds)
        times.append(time.perf_counter() - started)
    return float(np.median(times))

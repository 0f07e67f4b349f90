"""The jobs that look into models: where they differ, what rounding does, what holds them to a number of samples."""

from __future__ import annotations

import dataclasses
import tempfile
from functools import partial
from pathlib import Path

from conrepair.application.jobs.description import of_what_stays
from conrepair.application.jobs.recorder import Recorder
from conrepair.application.jobs.values import Rounding, RunRequest
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.diagnosis.localization.run.fed_model import FedModel, concrete
from conrepair.diagnosis.localization.run.opening import outputs_again
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.runtime.handing_on import leave
from conrepair.verdicts.evaluate.run import Run


@of_what_stays
def localize(folder: Path, source: FedModel, target: FedModel, options: Options) -> Localization:
    """Say where a target stops being its source.

    Args:
        folder: For activations.
        source: The model that is right.
        target: The model in question.
        options: Samples, margins, intent.
    """
    from conrepair.diagnosis.localization.models import localize_models  # with all that names faults

    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        return localize_models(source, target, Path(scratch), options, leave=partial(leave, "repair"))


@of_what_stays
def rounding(folder: Path, source: FedModel, options: Options) -> Rounding:
    """Measure what rounding does to a model's outputs, what they are exactly, and in other arithmetics.

    Args:
        folder: Receives a folder for each run, with one `output_<index>.npy` for each output.
        source: The model.
        options: As of `localize`.
    """
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        again = outputs_again(source, Path(scratch), options)
    if again is None:
        return Rounding()
    found, runs = again.measured, {}
    for name, parts in found.runs.items():
        (folder / name).mkdir()
        count = min(again.count, again.size * len(parts))
        recorder = Recorder(folder / name, count, again.axes, fixed=True)
        for start, arrays in zip(range(0, count, again.size), parts, strict=True):
            recorder.record(start, min(again.size, count - start), again.size, arrays, 0.0)
        recorder.finish()
        outputs = tuple(
            dataclasses.replace(spec, dtype=str(parts[0][spec.name].dtype))
            for spec in again.specs
            if spec.name in parts[0]
        )
        runs[name] = Run(name=name, folder=Path(name), outputs=outputs, count=count, starts=tuple(recorder.starts))
    return Rounding(runs, found.kernel)


def baked(folder: Path, model: Model, request: RunRequest) -> str:
    """Find what in a model's file holds it to one number of samples, though it leaves its batch open.

    Args:
        folder: Not used.
        model: That was run.
        request: Of the execution that failed with some.

    Returns:
        In words; "" where it isn't found.
    """
    from conrepair.diagnosis.localization.run.baked_batch import baked_batch  # with what edits files

    subject = FedModel(model, framework(model.framework).load(model).inputs, request.data, request.recipe)
    found = baked_batch(model, concrete(subject, 1), subject.axes)
    return "" if found is None else str(found)

"""The jobs that convert a model, or pieces of one."""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.application.jobs.description import described, of_what_stays
from conrepair.application.jobs.execution import with_declared_layouts
from conrepair.application.jobs.values import Calibration, ConversionStep, Outlined
from conrepair.application.report.row_paths import placed, resolved_in
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.converters.base import Converter
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import LoadedModel, Model, Provenance
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import CalibrationFeeds, open_feeds
from conrepair.ground.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.ground.runtime.errors import ConrepairError, ConversionError, ModelLoadError, SourceChangedError
from conrepair.ground.runtime.notes import collected_notes


def convert(folder: Path, model: Model, step: ConversionStep, inputs: tuple[TensorSpec, ...] = ()) -> LoadedModel:
    """Run one converter, then load and describe what it made.

    Args:
        folder: Receives the target; the result's path is relative to it.
        model: What to convert.
        step: The converter, and what it's told.
        inputs: The source's, for formats that don't record them.
    """
    made_by = converter(step.converter)
    started = time.perf_counter()
    with collected_notes() as notes:
        name = _run_converter(made_by, model, folder, step)
    seconds = time.perf_counter() - started
    if model_sha256(Path(model.path)) != model.sha256:
        raise SourceChangedError(f"{step.converter} changed its input {model.path}; its result was not used.")
    made = Model(
        framework=made_by.target,
        path=str(folder / name),
        sha256=model_sha256(folder / name),
        inputs=inputs,
        provenance=Provenance(model.sha256, step.converter, step.versions, step.options, seconds, tuple(notes)),
    )
    try:
        return described(made, folder)
    except ConrepairError as error:
        raise ModelLoadError(f"{step.converter} wrote a model that doesn't load. {error}") from error


@of_what_stays
def outline(folder: Path, model: Model) -> Outlined:
    """Write an ONNX model so that it can be cut anywhere.

    Args:
        folder: Receives it; the result's path is relative to it.
        model: The file.
    """
    from conrepair.diagnosis.repairs.conversion.piece import outline as write_outline

    path = folder / "outline.onnx"
    nodes = write_outline(model.path, model.inputs, path)
    return Outlined(Model("onnx", path.name, model_sha256(path)), tuple(nodes))


def attempt(
    folder: Path, model: Model, *, nodes: tuple[int, ...] | None, steps: tuple[ConversionStep, ...], run: bool
) -> None:
    """Take some nodes of a graph through converters; what comes out isn't kept: that it returns is the result.

    Args:
        folder: For what is made on the way.
        model: From `outline`.
        nodes: Places; None for all.
        steps: One after the other.
        run: Whether the result is run, too.
    """
    from conrepair.diagnosis.repairs.conversion.piece import piece
    from conrepair.formats.onnx.passes.files import load, save

    with tempfile.TemporaryDirectory(dir=folder) as name:
        scratch = Path(name)
        if nodes is not None:
            path = scratch / "piece.onnx"
            save(piece(load(model.path), set(nodes)), path)
            model = Model("onnx", str(path), model_sha256(path))
        inputs = framework("onnx").describe(model).inputs
        for place, step in enumerate(steps):
            own = scratch / str(place)
            own.mkdir()
            model = placed(convert(own, model, step, inputs).model, resolved_in(own))
        if run:
            runnable = framework(model.framework).load(model)
            runnable.run({spec.name: _zeros(spec) for spec in runnable.inputs})


def _zeros(spec: TensorSpec) -> npt.NDArray[Any]:
    return np.zeros([size if isinstance(size, int) else 2 for size in spec.shape], numpy_dtype(spec.dtype))


def _run_converter(made_by: Converter, source: Model, folder: Path, step: ConversionStep) -> str:
    """Call the converter, with samples when its options want some and there is data."""
    if reason := made_by.accepts(source):
        raise ConversionError(f"{made_by.name} can't take {source.path}: {reason}.")
    given: list[Any] = [step.options]
    if step.calibration is not None:
        given.append(_calibration_feeds(source, step.calibration))
    with _readable(source) as read:
        return made_by.convert(read, folder, *given)


def _calibration_feeds(source: Model, wanted: Calibration) -> CalibrationFeeds:
    inputs = with_declared_layouts(framework(source.framework).load(source).inputs, source)
    return CalibrationFeeds(open_feeds(wanted.data, inputs, wanted.recipe), inputs, wanted.samples)


def _readable(source: Model) -> contextlib.AbstractContextManager[Model]:
    """A model for the tools that read its file."""
    if source.framework != "onnx":
        return contextlib.nullcontext(source)
    from conrepair.formats.onnx.load.readable import read_copy

    return read_copy(source)

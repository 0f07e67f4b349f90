"""Trace one file: what it's fed and how large that is comes from the file or the data, as for every verb."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import onnx
from onnx.external_data_helper import uses_external_data

from conrepair.application.engine.session import Session
from conrepair.application.pipeline.declared_inputs import input_specs
from conrepair.application.pipeline.described import read_file
from conrepair.application.pipeline.single import model_inputs, request_of
from conrepair.application.verbs.options import Inputs
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.identity import copy_model
from conrepair.formats.models.model import Description
from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.intake.data import write_arrays
from conrepair.ground.intake.models import model_file
from conrepair.ground.runtime.errors import UsageError
from conrepair_lab.campaigns.tracing import Tracing
from conrepair_lab.cases.draft import keep
from conrepair_lab.options.trace import Trace
from conrepair_lab.report.tracing.folder import TracedModel

_SIZED = {"Resize", "Upsample"}  # whose other inputs are sizes
_SAMPLES = 64  # of data that are started from


def trace_file(asked: Trace, session: Session, given: Path) -> TracedModel:
    """Trace a model.

    Args:
        asked: What's wanted.
        session: Where.
        given: Folder for what was handed over as an object.

    Returns:
        What came of it; its files are there as long as the session is.

    Raises:
        ConrepairError: if the model isn't ONNX, or can't be run or searched.
    """
    given_path, _ = model_file(asked.model, given / "0")
    path = given_path
    specs = checked_onnx(path, session, asked.inputs, timeout=asked.timeout).inputs
    arrays: dict[str, Array] = {}
    weights: tuple[str, ...] = ()
    if asked.data is not None or any(not isinstance(size, int) for spec in specs for size in spec.shape):
        count = 1 if asked.data is None else _SAMPLES
        options = Inputs(
            model=path, inputs=asked.inputs, data=asked.data, samples=count, seed=asked.seed, timeout=asked.timeout
        )
        path, arrays = sized(options, session, given, session.room / "sized")
    if asked.weights:
        path, found = _weights_as_inputs(path, session.room)
        weights, arrays = tuple(found), arrays | found
    samples = session.room / "given.npz" if arrays else None
    if samples is not None:
        write_arrays(samples, arrays)
    tracing = Tracing(asked, path, session, samples, weights)
    tracing.run()
    told = dataclasses.replace(tracing.found, model=str(given_path))
    return TracedModel(told, tracing.judged, path, tracing.converted(), tracing.repaired)


def checked_onnx(path: Path, session: Session, inputs: Any, *, timeout: float) -> Description:
    """What an ONNX file consists of.

    Args:
        path: The file.
        session: Where it's read.
        inputs: Declared ones.
        timeout: In seconds.

    Raises:
        ConrepairError: if it's none, or can't be loaded.
    """
    framework = detect_framework(path)
    if framework != "onnx":
        raise UsageError(
            f"{path} is {framework}, and systems are asked with ONNX models: `conrepair convert {path} --to onnx` "
            "makes one."
        )
    return read_file(path, session, input_specs(inputs), timeout=timeout).checked()


def sized(options: Inputs, session: Session, given: Path, folder: Path) -> tuple[Path, dict[str, Array]]:
    """Inputs for a model, and a copy of it whose open sizes are those of a sample.

    Args:
        options: The model, and which inputs.
        session: Where they're made.
        given: Folder for what was handed over as an object.
        folder: For the copy.

    Returns:
        The copy, and arrays by input, samples first.
    """
    arrays = dict(model_inputs(request_of(options, given), session)[0])
    return _sized(Path(options.model), {name: array.shape[1:] for name, array in arrays.items()}, folder), arrays


def _weights_as_inputs(path: Path, room: Path) -> tuple[Path, dict[str, Array]]:
    """A copy of a model whose weights are inputs, and their values."""
    model = read_proto(path)
    sizes = {name for node in model.graph.node if node.op_type in _SIZED for name in node.input[1:]}
    found = {
        item.name: onnx.numpy_helper.to_array(item)
        for item in model.graph.initializer
        if item.data_type == onnx.TensorProto.FLOAT
        and item.dims
        and 0 not in item.dims
        and item.name not in sizes
        and not uses_external_data(item)
    }
    if not found:
        raise UsageError(f"{path.name} has no weights in float32 in it that could be searched. Leave --weights out.")
    there = {item.name for item in model.graph.input}
    for name, array in found.items():
        if name not in there:
            value = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, array.shape)
            model.graph.input.append(value)
    keep(model.graph.initializer, lambda item: item.name not in found)
    return _changed(path, model, room / "weights" / path.name), found


def _sized(path: Path, sizes: dict[str, tuple[int, ...]], folder: Path) -> Path:
    """A copy of a model whose open sizes are those of a sample."""
    model = read_proto(path)
    stored = {item.name for item in model.graph.initializer}
    known: dict[str, int] = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name in stored or value.name not in sizes:
            continue
        for dim, size in zip(dims, (1, *sizes[value.name]), strict=False):
            if not dim.HasField("dim_value"):
                if dim.dim_param:
                    known.setdefault(dim.dim_param, size)
                dim.dim_value = size
    for value in (*model.graph.output, *model.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_param") and dim.dim_param in known:
                dim.dim_value = known[dim.dim_param]
    return _changed(path, model, folder / path.name)


def _changed(path: Path, model: onnx.ModelProto, made: Path) -> Path:
    """Write a model that was changed beside a copy of the weights that it has in other files."""
    made.parent.mkdir(parents=True, exist_ok=True)
    copy_model(path, made)
    made.write_bytes(model.SerializeToString())
    return made

"""A model of somebody, with what ONNX Runtime computes in it: types are those of the values that were seen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import onnx.version_converter
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from conrepair.formats.models.identity import model_files
from conrepair.formats.onnx.load.proto_file import opset_of
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.words import lines_of
from conrepair_lab.generate.onnx_form import IR_VERSION, imports_of
from conrepair_lab.generate.pieces import Piece, operator_of, type_of
from conrepair_lab.generate.running import ModelSession, RefusedError
from conrepair_lab.generate.settings.tensors import BOOL, NUMERIC, Range
from conrepair_lab.generate.values.drawn import drawn_values

Array = np.ndarray[Any, Any]

_LARGEST = 1 << 30
"""Bytes of a model; beyond it neither ONNX nor ONNX Runtime take it from memory."""

_OPSETS = (17, 24)

_NOT_CONVERTED = (onnx.version_converter.ConvertError, onnx.shape_inference.InferenceError, RuntimeError)
"""Of operators of other domains, for one."""

_SIZES = (8, 32, 64, 224, 1, 16)
"""Tried for sizes that a model leaves open, the first axis apart."""


@dataclass(frozen=True, eq=False)
class OpenedFile:
    """A model.

    Attributes:
        name: Of its file.
        opset: Of the standard's operators.
        nodes: In order; those of functions are among them, and constants aren't.
        constants: By name.
        values: By name, what it was given and what it computed, where that's a tensor of numbers.
    """

    name: str
    opset: int
    nodes: tuple[onnx.NodeProto, ...]
    constants: Mapping[str, onnx.TensorProto]
    values: Mapping[str, Array]
    _arrays: dict[str, Array] = field(default_factory=dict, repr=False)

    def constant(self, name: str) -> Array:
        """A constant's values."""
        if name not in self._arrays:
            self._arrays[name] = np.asarray(numpy_helper.to_array(self.constants[name]))
        return self._arrays[name]


def opened(path: Path, opset: int | None = None, batch: int = 1) -> OpenedFile:
    """Open a model.

    Args:
        path: An ONNX file.
        opset: That it's brought to; None for its own, or the nearest one that there are specifications of.
        batch: The size of first axes that it leaves open.

    Raises:
        UsageError: if it can't be read, brought to the opset, or computed.
    """
    try:
        whole = sum(file.stat().st_size for file in model_files(path))
        if whole > _LARGEST:
            raise UsageError(f"{path} has {whole / 1e9:.1f} GB; networks are grown from up to 1 GB.")
        model = onnx.load(path)
    except (DecodeError, onnx.checker.ValidationError, OSError) as error:
        raise UsageError(f"{path} can't be read as an ONNX model ({lines_of(error)[0]}).") from error
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    own, words = opset_of(model) or 1, ""
    opset = min(max(own, _OPSETS[0]), _OPSETS[1]) if opset is None else opset
    for form in _brought(model, opset):
        for size in _SIZES if _open_axes(form.graph) else _SIZES[:1]:
            try:
                return _computed(path.name, form, opset, batch, size)
            except RefusedError as error:
                words = words or lines_of(error)[0]
    raise UsageError(
        f"{path}: ONNX Runtime doesn't compute it with opset {opset} and any of the sizes {_SIZES} where it leaves "
        f"them open ({words[:200]}). It has opset {own}; give a model with fixed sizes."
    )


def _brought(model: onnx.ModelProto, opset: int) -> Iterator[onnx.ModelProto]:
    """The model in an opset: converted, or as it is, which does as often as not."""
    if (opset_of(model) or 1) != opset:
        with contextlib.suppress(*_NOT_CONVERTED):
            yield onnx.version_converter.convert_version(model, opset)
    yield model


def _open_axes(graph: onnx.GraphProto) -> bool:
    sizes = [size for item in graph.input for size in item.type.tensor_type.shape.dim[1:]]
    return any(not size.HasField("dim_value") for size in sizes)


def _computed(name: str, model: onnx.ModelProto, opset: int, batch: int, size: int) -> OpenedFile:
    """Compute all of a model.

    Raises:
        RefusedError: if ONNX Runtime doesn't.
    """
    constants = {item.name: item for item in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        held = node.attribute[0].t if operator_of(node) == "Constant" and len(node.attribute) == 1 else None
        if held is not None and node.attribute[0].name == "value":
            constants[node.output[0]] = onnx.TensorProto.FromString(held.SerializeToString())
            constants[node.output[0]].name = node.output[0]
        else:
            nodes.append(node)
    inputs = [_fixed(item, batch, size) for item in model.graph.input if item.name not in constants]
    names = list(dict.fromkeys(output for node in nodes for output in node.output if output))
    outputs = [onnx.ValueInfoProto(name=output) for output in names]
    graph = onnx.helper.make_graph(nodes, "real", inputs, outputs, list(constants.values()))
    domains = {op.rpartition("::")[0] for op in Piece("", graph).operators}
    plain = onnx.helper.make_model(graph, opset_imports=imports_of(domains, opset), ir_version=IR_VERSION)
    generator = np.random.default_rng(0)
    feeds = {item.name: _drawn(item, generator) for item in inputs}
    values = {**feeds, **ModelSession(plain, names).run(feeds)}
    return OpenedFile(
        name,
        opset,
        tuple(nodes),
        constants,
        {
            text: value
            for text, value in values.items()
            if isinstance(value, np.ndarray) and value.dtype.name in NUMERIC + BOOL
        },
    )


def _fixed(info: onnx.ValueInfoProto, batch: int, size: int) -> onnx.ValueInfoProto:
    new = onnx.ValueInfoProto.FromString(info.SerializeToString())
    for axis, own in enumerate(new.type.tensor_type.shape.dim):
        if not own.HasField("dim_value") or own.dim_value < 0:
            own.dim_value = size if axis else batch
    return new


def _drawn(info: onnx.ValueInfoProto, generator: np.random.Generator) -> Array:
    """Values for an input; whole numbers are indices and truth values as often as not.

    Raises:
        RefusedError: if it's no tensor of numbers.
    """
    number = info.type.tensor_type.elem_type
    if not number or number == onnx.TensorProto.STRING:
        raise RefusedError(f"{info.name} isn't a tensor of numbers")
    made = type_of(info)
    if made.dtype not in NUMERIC + BOOL:
        raise RefusedError(f"{info.name} is {made.dtype}")
    return drawn_values(made, Range(0, 1) if made.dtype.startswith(("int", "uint")) else None, generator)

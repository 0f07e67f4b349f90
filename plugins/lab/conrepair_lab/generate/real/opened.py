"""A model of somebody, with what ONNX Runtime computes in it: types are those of the values that were seen.

Its units are nodes, those together that are tied by what isn't a tensor of numbers; pieces of it are made of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import onnx.version_converter
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from conrepair.formats.models.identity import model_files
from conrepair.formats.onnx.load.proto_file import opset_of, read_by
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.words import lines_of
from conrepair_lab.generate.onnx_form import IR_VERSION, ModelSession, RefusedError, imports_of
from conrepair_lab.generate.pieces import Piece, operator_of, type_of
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


# The units of a model: nodes, those together that are tied by what isn't a tensor of numbers; and pieces of it.


@dataclass(frozen=True, eq=False)
class Unit:
    """Nodes that are one in a network.

    Attributes:
        nodes: In order.
        reads: Names of tensors of numbers, constants apart, that they read from others.
        makes: Names of tensors of numbers that they make.
    """

    nodes: tuple[onnx.NodeProto, ...]
    reads: tuple[str, ...]
    makes: tuple[str, ...]

    @property
    def op(self) -> str:
        """The operator that it's about."""
        return operator_of(self.nodes[-1])


def units_of(model: OpenedFile) -> list[Unit]:
    """All units, in an order in which they can be computed."""
    made_by = {name: place for place, node in enumerate(model.nodes) for name in node.output if name}
    group = list(range(len(model.nodes)))
    for place, node in enumerate(model.nodes):
        for name in read_by(node):
            if name in made_by and name not in model.values:
                old, new = group[made_by[name]], group[place]
                group = [new if own == old else own for own in group]
    found = []
    for number in sorted(set(group), key=lambda own: max(place for place, other in enumerate(group) if other == own)):
        places = [place for place, own in enumerate(group) if own == number]
        unit = _unit(model, places)
        if _comes_last(model, unit, places) and unit.makes:
            found.append(unit)
    return found


def cut(units: Sequence[Unit], most: int, random: Random) -> list[Unit]:
    """Some units that hang together.

    Args:
        units: Of a model.
        most: How many.
        random: Where it begins, and how it goes on, comes from here.
    """
    if len(units) <= most:
        return list(units)
    names: dict[str, list[int]] = {}
    for place, unit in enumerate(units):
        for name in (*unit.reads, *unit.makes):
            names.setdefault(name, []).append(place)
    start = random.randrange(len(units))
    chosen, border = {start}, [start]
    while border and len(chosen) < most:
        unit = units[border[random.randrange(len(border))]]
        beside = {place for name in (*unit.reads, *unit.makes) for place in names[name]} - chosen
        if not beside:
            border = [place for place in border if units[place] is not unit]
            continue
        new = random.choice(sorted(beside))
        chosen.add(new)
        border.append(new)
    return [unit for place, unit in enumerate(units) if place in chosen]


def _unit(model: OpenedFile, places: Sequence[int]) -> Unit:
    nodes = tuple(model.nodes[place] for place in places)
    made = dict.fromkeys(name for node in nodes for name in node.output if name)
    read = dict.fromkeys(name for node in nodes for name in read_by(node))
    return Unit(
        nodes,
        tuple(name for name in read if name not in made and name not in model.constants),
        tuple(name for name in made if name in model.values),
    )


def _comes_last(model: OpenedFile, unit: Unit, places: Sequence[int]) -> bool:
    """Whether a unit reads tensors of numbers alone, and whatever reads of it comes behind all of it."""
    made, inner = set(unit.makes), set(places)
    between = (node for place, node in enumerate(model.nodes[: places[-1]]) if place not in inner)
    return all(name in model.values for name in unit.reads) and not any(made & set(read_by(node)) for node in between)

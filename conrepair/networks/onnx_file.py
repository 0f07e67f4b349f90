"""Load an ONNX file without its weights: those are mapped, and were never on the heap.

A message of protobuf holds what's in it as a whole, and for as long as any part of it is used. So weights are left
out of it before it's parsed, and copied one by one into a file in which they are aligned, as kernels need them: in
the model's own they begin anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
from onnx_ir.external_data import set_base_dir

from conrepair.frameworks.onnx_files.border import Border, plain_border
from conrepair.frameworks.onnx_files.readable import as_read
from conrepair.frameworks.proto_file import read_proto
from conrepair.runtime.unnamed_file import UnnamedFile, map_file

_LARGE = 1024  # bytes from which on a weight is mapped
_MAPPED = "conrepair:mapped"  # stands for our own file where a tensor says in which one it is
_NESTED = {"GraphProto", "NodeProto", "AttributeProto", "FunctionProto", "TensorProto"}
_RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number
_VARINT, _WIDE, _BYTES, _NARROW = 0, 1, 2, 5  # how protobuf writes a field

_Attributes = onnx_ir.AttributeType


def load_mapped(path: Path) -> tuple[onnx_ir.Model, Border]:
    """Load a file; weights that it keeps outside are mapped when they're read.

    Returns:
        The model, whose inputs and outputs are tensors, and what they were.

    Raises:
        Exception: of a type of onnx_ir's, protobuf's, or the file system's, if it's no model.
    """
    weights = UnnamedFile()
    with path.open("rb") as file:
        content = _without_weights(map_file(file.fileno()), onnx.ModelProto.DESCRIPTOR, weights)
    light = as_read(onnx.ModelProto.FromString(content))
    border = plain_border(light)
    model: onnx_ir.Model = onnx_ir.from_proto(light)
    mapped = weights.mapped()
    _replace_tensors(model, lambda tensor: _in_memory(tensor, mapped))
    set_base_dir(model.graph, path.parent)
    return model, border


def load_plain(path: Path) -> tuple[onnx_ir.Model, Border]:
    """Load a file to change it; sequences and narrow types stay what they are.

    Returns:
        The model, that has no maps, and what they were.

    Raises:
        Exception: as above.
    """
    proto = read_proto(path)
    border = plain_border(proto, whole=False)
    model: onnx_ir.Model = onnx_ir.from_proto(proto)
    set_base_dir(model.graph, path.parent)
    return model, border


@dataclass(frozen=True)
class _Field:
    """A field of a message that has a length: where it, its content, and what follows begin."""

    number: int
    start: int
    begin: int
    end: int


def _fields(message: memoryview) -> Iterator[_Field]:
    """The fields of a message that have a length.

    Raises:
        ValueError: if these bytes are no message.
    """
    place = 0
    while place < len(message):
        start = place
        tag, place = _varint(message, place)
        kind = tag & 7
        if kind == _VARINT:
            _, place = _varint(message, place)
        elif kind == _BYTES:
            length, begin = _varint(message, place)
            place = begin + length
            yield _Field(tag >> 3, start, begin, place)
        elif kind in {_WIDE, _NARROW}:
            place += 8 if kind == _WIDE else 4
        else:
            raise ValueError(f"a field is written in an unknown way ({kind})")
        if place > len(message):
            raise ValueError("the file is cut off")


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """A number, and where what follows begins."""
    value = 0
    for position in range(place, min(place + 10, len(message))):
        value |= (message[position] & 0x7F) << 7 * (position - place)
        if message[position] < 0x80:
            return value, position + 1
    raise ValueError("the file is cut off")


def _as_varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _without_weights(message: memoryview, kind: Any, weights: UnnamedFile) -> bytes:
    """A message whose large tensors, in whatever depth, say where in the other file their numbers are."""
    result, done = bytearray(), 0
    for field in _fields(message):
        known = kind.fields_by_number.get(field.number)
        inner = None if known is None else known.message_type
        if inner is None or inner.name not in _NESTED or field.end - field.begin <= _LARGE:
            continue
        content = message[field.begin : field.end]
        is_tensor = inner.name == "TensorProto"
        light = _without_numbers(content, weights) if is_tensor else _without_weights(content, inner, weights)
        result += message[done : field.start]
        result += _as_varint(field.number << 3 | _BYTES) + _as_varint(len(light)) + light
        done = field.end
    result += message[done:]
    return bytes(result)


def _without_numbers(message: memoryview, weights: UnnamedFile) -> bytes:
    """A tensor of which the numbers have gone to the other file, if they can be used as they're stored."""
    raw = [field for field in _fields(message) if field.number == _RAW_DATA]
    if len(raw) != 1 or raw[0].end - raw[0].begin <= _LARGE:
        return bytes(message)
    [field] = raw
    rest = bytes(message[: field.start]) + bytes(message[field.end :])
    light = onnx.TensorProto.FromString(rest)
    if onnx_ir.DataType(light.data_type).bitwidth % 8:
        return bytes(message)
    numbers = message[field.begin : field.end]
    light.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", _MAPPED), ("offset", weights.append(numbers)), ("length", len(numbers))):
        light.external_data.add(key=key, value=str(value))
    return bytes(light.SerializeToString())


def _replace_tensors(model: onnx_ir.Model, change: Callable[[Any], Any]) -> None:
    """Put other tensors into a model's initializers and attributes, in place."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            value.const_value = change(value.const_value)
    functions = (function.all_nodes() for function in model.functions.values())
    for node in chain(model.graph.all_nodes(), *functions):
        for name, attribute in list(node.attributes.items()):
            if attribute.type == _Attributes.TENSOR and not attribute.is_ref():
                node.attributes[name] = onnx_ir.AttrTensor(name, change(attribute.as_tensor()))
            elif attribute.type == _Attributes.TENSORS and not attribute.is_ref():
                node.attributes[name] = onnx_ir.AttrTensors(name, [*map(change, attribute.as_tensors())])


def _in_memory(tensor: Any, mapped: memoryview) -> Any:
    """A tensor over the mapped numbers, for one that has its numbers there.

    Raises:
        ValueError: if there are fewer or more than its shape says.
    """
    if not isinstance(tensor, onnx_ir.ExternalTensor) or tensor.location != _MAPPED:
        return tensor
    start, length = tensor.offset or 0, tensor.length or 0
    numbers = np.frombuffer(mapped[start : start + length], tensor.dtype.numpy()).reshape(tensor.shape.numpy())
    return onnx_ir.Tensor(numbers, dtype=tensor.dtype, name=tensor.name, doc_string=tensor.doc_string)

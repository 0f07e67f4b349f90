"""ONNX files as messages without large numbers: these stay in the file, and are never on the heap.

A message of protobuf holds what's in it as a whole, and for as long as any part of it is used. So weights are left
out of it before it's parsed, and said to be in an external file, which is the model's own.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from conrepair.formats.onnx.load.proto_file import check_functions, open_onnx

IN_ITSELF = "conrepair:mapped"
"""Where a tensor says in which file its numbers are: in the file of the model."""

_LARGE = 1024  # bytes from which on a weight is left out
_NESTED = {"GraphProto", "NodeProto", "AttributeProto", "FunctionProto", "TensorProto"}
_RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number
_MOST_FIELDS, _DEEPEST = 200_000, 90
_VARINT, _WIDE, _BYTES, _NARROW = 0, 1, 2, 5  # how protobuf writes a field
_PARTS_OF_BYTES = {
    number
    for name, number in onnx.TensorProto.DataType.items()
    if name.endswith(("INT2", "INT4", "T4E2M1", "T6E2M3", "T6E3M2"))
}


def read_light(path: Path) -> tuple[onnx.ModelProto, memoryview]:
    """A file's message without large numbers, and all its bytes, mapped.

    Raises:
        ModelLoadError: as of `read_proto`.
        ValueError: if it's empty, or no message.
        DecodeError: if it's damaged.
    """
    with open_onnx(path) as file:
        try:
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError:  # this file system maps none
            mapped = memoryview(file.read())
    try:
        light = _Light().without_weights(mapped, onnx.ModelProto.DESCRIPTOR, 0)
    except _TooMuchError:
        light = bytes(mapped)
    # External data may not lie behind a link, as the file's own numbers would.
    proto = onnx.ModelProto.FromString(bytes(mapped) if path.is_symlink() else light)
    check_functions(path, proto)
    return proto, mapped


class _TooMuchError(Exception):
    """A file of more fields than it's worth to look at one by one, or nested deeper than protobuf takes."""


@dataclass(frozen=True)
class _Field:
    """A field of a message that has a length: where it, its content, and what follows begin."""

    number: int
    start: int
    begin: int
    end: int


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


class _Light:
    """Leaves large numbers out of a message."""

    def __init__(self) -> None:
        self._left = _MOST_FIELDS

    def _fields(self, message: memoryview) -> Iterator[_Field]:
        """The fields of a message that have a length.

        Raises:
            ValueError: if these bytes are no message.
            _TooMuchError: if there are too many.
        """
        place = 0
        while place < len(message):
            start, self._left = place, self._left - 1
            if not self._left:
                raise _TooMuchError
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

    def without_weights(self, message: memoryview, kind: Any, start: int, depth: int = 0) -> bytes:
        """A message whose large tensors say where in the file, which has it at `start`, they are."""
        if depth > _DEEPEST:
            raise _TooMuchError
        result, done = bytearray(), 0
        for field in self._fields(message):
            known = kind.fields_by_number.get(field.number)
            inner = None if known is None else known.message_type
            if inner is None or inner.name not in _NESTED or field.end - field.begin <= _LARGE:
                continue
            content = message[field.begin : field.end]
            place, is_tensor = start + field.begin, inner.name == "TensorProto"
            light = (
                self._without_numbers(content, place)
                if is_tensor
                else self.without_weights(content, inner, place, depth + 1)
            )
            result += message[done : field.start]
            result += _as_varint(field.number << 3 | _BYTES) + _as_varint(len(light)) + light
            done = field.end
        result += message[done:]
        return bytes(result)

    def _without_numbers(self, message: memoryview, start: int) -> bytes:
        """A tensor that says where in the file its numbers are, if they can be used as they're stored."""
        raw = [field for field in self._fields(message) if field.number == _RAW_DATA]
        if len(raw) != 1 or raw[0].end - raw[0].begin <= _LARGE:
            return bytes(message)
        [field] = raw
        rest = bytes(message[: field.start]) + bytes(message[field.end :])
        light = onnx.TensorProto.FromString(rest)
        if light.data_type in _PARTS_OF_BYTES:
            return bytes(message)
        light.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (
            ("location", IN_ITSELF),
            ("offset", start + field.begin),
            ("length", field.end - field.begin),
        ):
            light.external_data.add(key=key, value=str(value))
        return bytes(light.SerializeToString())

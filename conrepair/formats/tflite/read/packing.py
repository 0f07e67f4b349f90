"""Write a TFLite model's tables, and numbers behind them, where they may exceed what a flatbuffer holds."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import flatbuffers
import numpy as np

from conrepair.ground.graph.layer_graph import Array

_IDENTIFIER = b"TFL3"
_ALIGNMENT = 64
_OFFSET_FIELD = 6  # of the table Buffer, in its list of fields


def is_outside(buffer: Any) -> bool:
    """Whether a buffer's numbers stand behind the flatbuffer; 1 is what tools write before they know the place."""
    return bool(buffer.offset > 1)


def outside_bytes(content: Any, buffer: Any) -> Array:
    """The numbers of such a buffer, as a view of the file.

    Args:
        content: All of the file.
        buffer: Of it.

    Raises:
        ValueError: if the file ends before.
    """
    return np.frombuffer(content, np.uint8, buffer.size, buffer.offset)


def with_own_options(content: Any, model: Any) -> None:
    """Give operators the options of their own that stand behind the flatbuffer, in place: packing moves those.

    Args:
        content: All of the file.
        model: Its tables.
    """
    for graph in model.subgraphs:
        for operator in graph.operators or []:
            if operator.largeCustomOptionsOffset > 1:
                place, size = operator.largeCustomOptionsOffset, operator.largeCustomOptionsSize
                operator.customOptions = np.frombuffer(content, np.uint8, size, place)
                operator.largeCustomOptionsOffset = operator.largeCustomOptionsSize = 0


def packed(model: Any, data: Mapping[int, Array]) -> list[Any]:
    """The tables, and behind them numbers, which so are copied once only.

    Args:
        model: The tables; buffers that are in `data` get their places.
        data: Bytes by the index of their buffer, more than one of each.

    Returns:
        What makes up the file, one behind the other.
    """
    from ai_edge_litert import schema_py_generated as schema

    for index, numbers in data.items():
        model.buffers[index].data = None
        model.buffers[index].offset, model.buffers[index].size = _ALIGNMENT, numbers.nbytes
    tables = _tables(model)
    written = schema.Model.GetRootAs(tables, 0)
    place = _aligned(len(tables))
    parts: list[Any] = [tables, bytes(place - len(tables))] if data else [tables]
    for index, numbers in data.items():
        table = written.Buffers(index)._tab  # only packing the tables tells where they end
        struct.pack_into("<Q", tables, table.Pos + table.Offset(_OFFSET_FIELD), place)
        parts += [numbers.data, bytes(_aligned(numbers.nbytes) - numbers.nbytes)]
        place += _aligned(numbers.nbytes)
    return parts


def _tables(model: Any) -> bytearray:
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), _IDENTIFIER)
    return bytearray(builder.Output())


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT

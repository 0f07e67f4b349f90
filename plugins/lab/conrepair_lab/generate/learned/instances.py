"""An instance: an operator as it was seen in a model; and files of instances."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from google.protobuf import json_format
from onnx import helper, numpy_helper

from conrepair.formats.models.identity import onnx_tensors
from conrepair_lab.generate.pieces import Piece
from conrepair_lab.generate.settings.tensors import Range

MOST = 4096
"""Elements that a tensor of an instance may have."""

_OF_EACH = 16
"""Instances that an operator has; ONNX has up to 80 cases of one."""


@dataclass(frozen=True)
class Instance:
    """An operator with its attributes, the types that it was seen with, and the constants that it needs.

    Attributes:
        op: Its name; the domain is before it where it isn't the standard's.
        opsets: Of the standard, with which ONNX Runtime computed it.
        graph: It, and what's around it so that only tensors of numbers go in and out (`plain`).
        ranges: By input, the smallest and the largest value that was seen; None for truth values, and for no values.
        pinned: By input, whether it must be between them.
        source: Where it was seen.
    """

    op: str
    opsets: tuple[int, ...]
    graph: Mapping[str, Any]
    ranges: tuple[tuple[float, float] | None, ...]
    pinned: tuple[bool, ...]
    source: str

    @cached_property
    def piece(self) -> Piece:
        """What is placed."""
        return Piece(self.op, json_format.ParseDict(self.graph, onnx.GraphProto()))

    def values(self, place: int) -> Range | None:
        """The values that an input must have; None for any."""
        return Range(*(self.ranges[place] or (0, 0))) if self.pinned[place] else None


def plain(graph: onnx.GraphProto) -> dict[str, Any]:
    """A graph as plain values, arrays as lists."""
    new = onnx.GraphProto.FromString(graph.SerializeToString())
    for tensor in onnx_tensors(new):
        if tensor.HasField("raw_data"):
            array = numpy_helper.to_array(tensor)
            tensor.CopyFrom(helper.make_tensor(tensor.name, tensor.data_type, array.shape, array.ravel()))
    found: dict[str, Any] = json_format.MessageToDict(new, preserving_proto_field_name=True)
    return found


def text_of_instances(instances: Iterable[Instance]) -> str:
    """What a file of instances has: one a line, so that changes can be seen."""
    lines = (json.dumps(asdict(item), sort_keys=True) for item in instances)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def instances_of(text: str) -> tuple[Instance, ...]:
    """The instances of a file."""
    return tuple(
        Instance(
            item["op"],
            tuple(item["opsets"]),
            item["graph"],
            tuple(None if pair is None else (pair[0], pair[1]) for pair in item["ranges"]),
            tuple(item["pinned"]),
            item["source"],
        )
        for item in json.loads(text)
    )


def spread(items: Iterable[Instance]) -> tuple[Instance, ...]:
    """Some of each operator, from all over what there is; each graph once."""
    by_op: dict[str, dict[str, Instance]] = {}
    for item in items:
        by_op.setdefault(item.op, {}).setdefault(json.dumps(item.graph, sort_keys=True), item)
    found: list[Instance] = []
    for op in sorted(by_op):
        own = list(by_op[op].values())
        step = max(1.0, len(own) / _OF_EACH)
        found += [own[int(place * step)] for place in range(min(_OF_EACH, len(own)))]
    return tuple(found)


def range_of(array: np.ndarray[Any, Any]) -> tuple[float, float] | None:
    """The smallest and the largest of some values."""
    if array.dtype.kind == "b" or not array.size:
        return None
    low, high = array.min().item(), array.max().item()
    return (low, high) if np.isfinite([float(low), float(high)]).all() else None

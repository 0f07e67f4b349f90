"""ONNX files as messages, of a size that the format has: whatever is larger would only fill memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from conrepair.runtime.errors import ModelLoadError
from conrepair.runtime.ordinary_file import NotOrdinaryError, open_ordinary

if TYPE_CHECKING:
    import onnx

__all__ = ["inner_graphs", "read_by", "read_proto", "read_within"]

_LARGEST = (1 << 31) - 1  # bytes that Protobuf can read; larger weights are in files of their own


def read_proto(path: str | Path) -> onnx.ModelProto:
    """What an ONNX file says; weights in files of their own aren't read.

    Raises:
        ModelLoadError: if it's larger than such a file can be, or no file.
        OSError: if it can't be opened.
        DecodeError: if it's damaged.
    """
    import onnx

    try:
        with open_ordinary(path, _LARGEST) as stream:
            return onnx.load(stream, format="protobuf", load_external_data=False)
    except NotOrdinaryError as error:
        raise ModelLoadError(f"{error}: it's no ONNX model.") from error


def inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in a node's attributes: branches, or a loop's body."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def read_by(node: onnx.NodeProto) -> list[str]:
    """Names of tensors that a node reads, in its branches and loops, too."""
    return list(dict.fromkeys([*filter(None, node.input), *read_within(node)]))


def read_within(node: onnx.NodeProto) -> list[str]:
    """Names of tensors around a node that the graphs inside it read."""
    found: dict[str, None] = {}
    for graph in inner_graphs(node):
        own = {item.name for item in (*graph.input, *graph.initializer)}
        own.update(name for inner in graph.node for name in inner.output)
        read = [*(name for inner in graph.node for name in read_by(inner)), *(item.name for item in graph.output)]
        found |= dict.fromkeys(name for name in read if name not in own)
    return list(found)

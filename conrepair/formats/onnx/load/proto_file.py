"""ONNX files as messages, of a size that the format has: whatever is larger would only fill memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from conrepair.ground.runtime.bounds import check_expansion
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.files.ordinary_file import NotOrdinaryError, open_ordinary

if TYPE_CHECKING:
    import onnx

ONNX_DOMAIN = {"", "ai.onnx"}
"""How files call the domain of ONNX's own operators."""

_LARGEST = (1 << 31) - 1  # bytes that Protobuf can read; larger weights are in files of their own


def read_proto(path: str | Path) -> onnx.ModelProto:
    """What an ONNX file says; weights in files of their own aren't read.

    Raises:
        ModelLoadError: if it's larger than such a file can be, or would be with its functions written out; if it's no
            file.
        OSError: if it can't be opened.
        DecodeError: if it's damaged.
    """
    import onnx

    with open_onnx(path) as stream:
        proto = onnx.load(stream, format="protobuf", load_external_data=False)
    check_functions(path, proto)
    return proto


def open_onnx(path: str | Path) -> BinaryIO:
    """Open an ONNX file for reading.

    Raises:
        ModelLoadError: if it's larger than such a file can be; if it's no file.
        OSError: if it can't be opened.
    """
    try:
        return open_ordinary(path, _LARGEST)
    except NotOrdinaryError as error:
        raise ModelLoadError(f"{error}: it's no ONNX model.") from error


def check_functions(path: str | Path, proto: onnx.ModelProto) -> None:
    """Refuse functions that come to too many operators where they're called, which ONNX Runtime writes out."""
    if not proto.functions:
        return
    called: dict[str, Counter[str]] = {}
    for part in (*proto.functions, proto.graph):
        name = "the graph" if part is proto.graph else _name(part.domain, part.name, part.overload)
        # A name that's there twice counts as both: which of them a library takes is its own affair.
        called.setdefault(name, Counter()).update(_name(n.domain, n.op_type, n.overload) for n in nodes_of(part))
    check_expansion(path, {name: item.total() for name, item in called.items()}, called)


def _name(domain: str, operator: str, overload: str) -> str:
    """A function's as it's called, so that no two are the same."""
    domain = "" if domain in ONNX_DOMAIN else domain
    return f"{operator!r} of {domain!r}" + (f" ({overload!r})" if overload else "")


def opset_of(proto: onnx.ModelProto) -> int | None:
    """The opset of ONNX's own operators; None where a file says none."""
    return next((item.version for item in proto.opset_import if item.domain in ONNX_DOMAIN), None)


def nodes_of(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """All nodes of a graph or a function, those of subgraphs (If, Loop, Scan) included."""
    for node in graph.node:
        yield node
        for subgraph in inner_graphs(node):
            yield from nodes_of(subgraph)


def inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in a node's attributes: branches, or a loop's body."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def fed_to(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Inputs of a graph that no initializer stands for."""
    stored = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in stored]


def read_by(node: onnx.NodeProto) -> list[str]:
    """Names of tensors that a node reads, in its branches and loops, too."""
    return list(dict.fromkeys([*filter(None, node.input), *read_within(node)]))


def read_within(node: onnx.NodeProto) -> list[str]:
    """Names of tensors around a node that the graphs inside it read."""
    found: dict[str, None] = {}
    for graph in inner_graphs(node):
        own = _defined(graph)
        read = [*(name for inner in graph.node for name in read_by(inner)), *(item.name for item in graph.output)]
        found |= dict.fromkeys(name for name in read if name not in own)
    return list(found)


def rename_read(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Let a node, and the graphs in it, read values of other names; in place.

    Args:
        node: Of a graph.
        names: By the values' own; what a graph in the node defines itself is another value.
    """
    node.input[:] = [names.get(name, name) for name in node.input]
    for graph in inner_graphs(node):
        own = _defined(graph)
        visible = {old: new for old, new in names.items() if old not in own}
        for inner in graph.node:
            rename_read(inner, visible)
        for value in graph.output:
            value.name = visible.get(value.name, value.name)


def _defined(graph: onnx.GraphProto) -> set[str]:
    """Names of values that a graph holds, is given or computes."""
    return {item.name for item in (*graph.input, *graph.initializer)}.union(*(node.output for node in graph.node))

"""ONNX files that are refused for how they're written alone: the same network, as ONNX and ONNX Runtime accept it."""

from __future__ import annotations

import graphlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.identity import copy_model
from conrepair.formats.onnx.load.proto_file import inner_graphs, read_by, read_proto
from conrepair.ground.runtime.errors import ModelLoadError


def make_well_formed(proto: onnx.ModelProto) -> tuple[str, ...]:
    """Keep one of what a graph defines twice alike, sort its nodes, and give them names of their own, in place.

    Args:
        proto: Of a file; it may have external data.

    Returns:
        What was changed, in words; nothing where that isn't why a file is refused.

    Raises:
        ModelLoadError: if two definitions of one tensor differ: nobody can know which of them is meant.
    """
    return tuple(line for where, graph in _graphs(proto.graph, "the graph") for line in _changes(graph, where))


def write_well_formed(target: Path, copy: Path) -> tuple[str, ...]:
    """Write a model as its libraries take it, where that's all that they refuse it for.

    Args:
        target: Its file; it stays as it is.
        copy: To write, in a folder that is made.

    Returns:
        What was changed, in words; nothing where nothing was written.

    Raises:
        ModelLoadError: if two definitions of one tensor differ.
    """
    if detect_framework(target, recorded=True) != "onnx":
        return ()
    try:
        proto = read_proto(target)
    except DecodeError:
        return ()
    changes = make_well_formed(proto)
    if changes:
        copy.parent.mkdir(exist_ok=True)
        copy_model(target, copy)
        copy.write_bytes(proto.SerializeToString())
    return changes


def _graphs(graph: onnx.GraphProto, where: str) -> Iterator[tuple[str, onnx.GraphProto]]:
    """A graph and those inside it, with where they are, in words."""
    yield where, graph
    for node in graph.node:
        of = f"{node.op_type} `{node.name or ', '.join(node.output)}`"
        inner = list(inner_graphs(node))
        for place, part in enumerate(inner):
            which = f"branch {place + 1}" if len(inner) > 1 else "the body"
            yield from _graphs(part, f"{which} of {of}")


def _changes(graph: onnx.GraphProto, where: str) -> Iterator[str]:
    defined: dict[str, Any] = {}
    for items in (graph.initializer, graph.node):
        for item in list(items):
            names = item.output if isinstance(item, onnx.NodeProto) else (item.name,)
            known = [defined.setdefault(name, item) for name in names if name]
            if other := next((one for one in known if one is not item), None):
                if _content(other) != _content(item):
                    raise ModelLoadError(
                        f"{where} defines `{names[0]}` twice, as {_shown(other)} and as {_shown(item)}, and nothing "
                        "says which of them is meant. Export the model anew, or remove the wrong one."
                    )
                # Messages are equal by their content, so that `remove` takes the first of them.
                items.remove(item)
                yield f"{where} defines `{names[0]}` twice alike; one of them is left out"
    makers = {name: place for place, node in enumerate(graph.node) for name in node.output if name}
    needs = {
        place: [makers[name] for name in read_by(node) if name in makers] for place, node in enumerate(graph.node)
    }
    if any(maker >= place for place, read in needs.items() for maker in read):
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
        del graph.node[:]
        graph.node.extend(nodes[place] for place in graphlib.TopologicalSorter(needs).static_order())
        yield f"nodes of {where} stand before what they read; they are sorted"
    taken: set[str] = set()
    for place, node in enumerate(graph.node):
        if node.name in taken:
            yield f"{where} has two nodes called `{node.name}`; the second one is renamed"
            node.name = f"{node.name}_{place}"
        taken |= {node.name} - {""}


def _content(item: Any) -> bytes:
    """What is the same of two definitions that are; names of nodes and texts about them say nothing."""
    copy = type(item).FromString(item.SerializeToString())
    copy.ClearField("doc_string")
    if isinstance(copy, onnx.NodeProto):
        copy.ClearField("name")
    elif not copy.external_data and copy.data_type != onnx.TensorProto.STRING:
        copy = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(copy), copy.name)
    content: bytes = copy.SerializeToString()
    return content


def _shown(item: Any) -> str:
    """A definition, in a few words."""
    if isinstance(item, onnx.NodeProto):
        return f"{item.op_type}({', '.join(item.input)})"
    kind = onnx.TensorProto.DataType.Name(item.data_type).lower()
    words = f"an initializer of {kind} {list(item.dims)}"
    if item.external_data or item.data_type == onnx.TensorProto.STRING:
        return words
    first = onnx.numpy_helper.to_array(item).reshape(-1)[:3]
    return f"{words} that begins {', '.join(f'{value:g}' for value in first)}"

"""What an ONNX file holds and the library that it's changed with doesn't: put back where it's written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx

from conrepair.frameworks.proto_file import inner_graphs

__all__ = ["carry_over"]

_OF_MODEL = ("training_info", "configuration")
_OF_TENSOR = ("doc_string", "metadata_props")
_SAID = "metadata_props"
_LONG = "ai.onnx"  # the default domain, by its other name


def carry_over(original: onnx.ModelProto, path: Path) -> None:
    """Give a written file what onnx_ir left out of it, wrote twice, or in another order, in place.

    It reads no training information, no sparse constants and no configurations of devices; of tensors whose numbers
    were changed what's said about them is gone, and of all others it's there twice; what's said by key is sorted, and
    the default domain has its short name.

    Args:
        original: The model as it was read, without its external data.
        path: Of the written file.
    """
    if not _has_more(original):
        return
    model = onnx.load(path, load_external_data=False)
    for field in _OF_MODEL:
        _put(original, model, field)
    _put(original.graph, model.graph, "sparse_initializer")
    if _opsets(original) == _opsets(model):
        _put(original, model, "opset_import")
    said = {tensor.name: tensor for tensor in _tensors(original.graph)}
    for tensor in _tensors(model.graph):
        if tensor.name in said:
            for field in _OF_TENSOR:
                _put(said[tensor.name], tensor, field)
    before = dict(_parts(original))
    for place, part in _parts(model):
        if place in before:
            _restore(before[place], part)
    onnx.save(model, path)


def _has_more(model: onnx.ModelProto) -> bool:
    return bool(
        any(_filled(model, field) for field in _OF_MODEL)
        or model.graph.sparse_initializer
        or any(_filled(tensor, field) for tensor in _tensors(model.graph) for field in _OF_TENSOR)
        or any(len(_props(part)) > 1 for _, part in _parts(model))
        or any(_domain(part) == _LONG for part in (*model.opset_import, *(node for _, node in _parts(model))))
    )


def _parts(model: onnx.ModelProto) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All that something can be said about by key, each with what it's told by."""
    yield ("model",), model
    yield from _of_graph(model.graph, ())
    for function in model.functions:
        place = (function.domain, function.name, function.overload)
        yield place, function
        yield from _of_nodes(function.node, place)


def _of_graph(graph: onnx.GraphProto, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield (*place, "graph"), graph
    for field in ("input", "output", "value_info"):
        yield from (((*place, field, value.name), value) for value in getattr(graph, field))
    yield from _of_nodes(graph.node, place)


def _of_nodes(nodes: Iterable[onnx.NodeProto], place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for node in nodes:
        own = (*place, *node.output)
        yield own, node
        for attribute in node.attribute:
            for number, graph in enumerate((attribute.g, *attribute.graphs)):
                yield from _of_graph(graph, (*own, attribute.name, str(number)))


def _props(part: Any) -> list[tuple[str, str]]:
    return [(item.key, item.value) for item in getattr(part, _SAID, ())]


def _opsets(model: onnx.ModelProto) -> list[tuple[str, int]]:
    return sorted(("" if item.domain == _LONG else item.domain, item.version) for item in model.opset_import)


def _domain(part: Any) -> str:
    return str(part.domain) if isinstance(part, onnx.NodeProto | onnx.OperatorSetIdProto) else ""


def _restore(one: Any, two: Any) -> None:
    """Let what's said about a part be in the first one's order, and the default domain have its name."""
    if _props(one) != _props(two) and sorted(_props(one)) == sorted(_props(two)):
        _put(one, two, _SAID)
    if _domain(one) == _LONG and not _domain(two):
        two.domain = _LONG


def _filled(message: Any, field: str) -> bool:
    return field in message.DESCRIPTOR.fields_by_name and bool(getattr(message, field))


def _put(one: Any, two: Any, field: str) -> None:
    """Let a field of the second message be as the first has it."""
    if field not in one.DESCRIPTOR.fields_by_name:  # of an older onnx
        return
    two.ClearField(field)
    value = getattr(one, field)
    if isinstance(value, str):
        if one.HasField(field):
            setattr(two, field, value)
    else:
        getattr(two, field).extend(value)


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """A graph's constants, those of the graphs in its nodes too."""
    yield from graph.initializer
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from _tensors(inner)

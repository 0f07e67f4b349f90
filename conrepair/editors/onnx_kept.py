"""What an ONNX file holds and the library that it's changed with doesn't: put back where it's written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

__all__ = ["carry_over"]

_OF_MODEL = ("training_info", "configuration")
_OF_TENSOR = ("doc_string", "metadata_props")


def carry_over(original: onnx.ModelProto, path: Path) -> None:
    """Give a written file what onnx_ir left out of it, or wrote twice, in place.

    It reads no training information, no sparse constants and no configurations of devices; of tensors whose numbers
    were changed what's said about them is gone, and of all others it's there twice.

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
    said = {tensor.name: tensor for tensor in _tensors(original.graph)}
    for tensor in _tensors(model.graph):
        if tensor.name in said:
            for field in _OF_TENSOR:
                _put(said[tensor.name], tensor, field)
    onnx.save(model, path)


def _has_more(model: onnx.ModelProto) -> bool:
    return bool(
        any(_filled(model, field) for field in _OF_MODEL)
        or model.graph.sparse_initializer
        or any(_filled(tensor, field) for tensor in _tensors(model.graph) for field in _OF_TENSOR)
    )


def _filled(message: Any, field: str) -> bool:
    return field in message.DESCRIPTOR.fields_by_name and bool(getattr(message, field))


def _put(one: Any, two: Any, field: str) -> None:
    """Let a field of the second message be as the first has it."""
    if field not in one.DESCRIPTOR.fields_by_name:  # of an older onnx
        return
    two.ClearField(field)
    value = getattr(one, field)
    if isinstance(value, str):
        setattr(two, field, value)
    else:
        getattr(two, field).extend(value)


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """A graph's constants, those of the graphs in its nodes too."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)

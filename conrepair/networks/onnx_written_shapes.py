"""Shapes that are written into an ONNX file, for its reshapes and expansions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from conrepair.frameworks.proto_file import read_proto

__all__ = ["batch_numbers", "written_shapes"]

_SHAPED = frozenset({"Reshape", "Expand"})  # their first input gets another shape, the second

_TRIED = 4


def written_shapes(path: Path | str) -> dict[str, tuple[int, ...]]:
    """The shapes in a file, by what its nodes give; of the main graph.

    Args:
        path: Of the file.
    """
    from onnx import numpy_helper

    graph = read_proto(path).graph
    held = {tensor.name: tensor for tensor in graph.initializer if not tensor.external_data}
    for node in graph.node:
        if node.op_type == "Constant":
            held.update((node.output[0], item.t) for item in node.attribute if item.name == "value")
    return {
        node.output[0]: tuple(map(int, numpy_helper.to_array(held[node.input[1]]).reshape(-1)))
        for node in graph.node
        if node.op_type in _SHAPED and len(node.input) > 1 and node.input[1] in held
    }


def batch_numbers(shapes: Mapping[str, tuple[int, ...]], axes: Collection[int]) -> list[int]:
    """Numbers in shapes that may be the batch's, few and in their order.

    Args:
        shapes: Of `written_shapes`.
        axes: That inputs have their samples along.
    """
    places = sorted({0, *axes})
    found = [shape[place] for shape in shapes.values() for place in places if place < len(shape)]
    return list(dict.fromkeys(number for number in found if number > 0))[:_TRIED]

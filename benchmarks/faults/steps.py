"""Chains of operators that faults put into a model, as ONNX calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conrepair.formats.editing.editor import Editor
from conrepair.formats.editing.operation import NotEditableError, Operation
from conrepair.ground.graph.layer_graph import Array, Node

__all__ = ["Step", "insert"]

Step = tuple[str, Mapping[str, Any], Sequence[Array]]
"""An operator as ONNX calls it, its attributes, and the constants behind its first input."""

_TYPES = {1: "float32", 6: "int32", 7: "int64", 10: "float16", 11: "float64"}  # as ONNX numbers them
_ROLES = {
    "QuantizeLinear": ("scale", "zero_point"),
    "DequantizeLinear": ("scale", "zero_point"),
    "Gather": ("indices",),
    "PRelu": ("slope",),
}
_CLIPPED = ("min", "max")  # what Clip has behind its operand


def insert(editor: Editor, tensor: str, steps: Sequence[Step], label: str, reader: Node | None = None) -> None:
    """Put a chain of operators between a tensor and all that read it, or one of them.

    Args:
        editor: Of the model.
        tensor: An input of the graph, or a node's result; an output of the graph too.
        steps: The chain.
        label: Part of the new names.
        reader: The only node that shall read the chain's result.

    Raises:
        NotEditableError: if the format can't.
    """
    editor.graft(tensor, _operations_of(steps, tensor), label, () if reader is None else (reader,))


def _operations_of(steps: Sequence[Step], tensor: str) -> tuple[Operation, ...]:
    """A chain of ONNX's operators behind a tensor.

    Args:
        steps: The chain.
        tensor: What the first one reads.

    Raises:
        NotEditableError: if a constant has no place in the vocabulary.
    """
    found: list[Operation] = []
    for operator, attributes, constants in steps:
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in attributes.items()}
        arrays = [np.asarray(array) for array in constants]
        parameters: dict[str, Array] = {}
        if operator == "Clip" and arrays:
            given |= dict(zip(_CLIPPED, (float(array.item()) for array in arrays), strict=False))
        elif operator == "Cast" and isinstance(number := given.get("to"), int):
            given["to"] = _TYPES[number]
        else:
            parameters = dict(zip(_ROLES.get(operator, ("operand",)), arrays, strict=False))
        if len(parameters) < len(arrays) and operator != "Clip":
            raise NotEditableError(f"{operator} has no place for {len(arrays)} constants behind its input")
        found.append(Operation(operator, (len(found) - 1 if found else tensor,), given, parameters))
    return tuple(found)

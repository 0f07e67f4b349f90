"""A part of a graph run on its own, to find out whether it computes what it looks like."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir

from conrepair.importer.constants import run
from conrepair.importer.values import Array
from conrepair.onnx_passes.computing import computing
from conrepair.onnx_passes.defaults import attribute
from conrepair.onnx_passes.initializers import constant_of

__all__ = ["compute"]

_LARGEST = 400


def compute(
    wanted: onnx_ir.Value,
    feeds: Mapping[onnx_ir.Value, Array],
    opsets: Mapping[str, int],
    sizes: Mapping[str, int] | None = None,
) -> Array | None:
    """The value that the nodes between some values and another one compute.

    Args:
        wanted: What is asked for.
        feeds: Arrays for values; everything else must follow from them, from constants and from sizes.
        opsets: Of the model.
        sizes: What sizes that have names shall be, where nodes ask for the shape of other values.

    Returns:
        The array; None if other values take part, if the region is large, or if ONNX Runtime can't compute it.
    """
    found = _between(wanted, feeds, sizes or {})
    if found is None:
        return None
    nodes, constants = found
    fed = {str(value.name): array for value, array in feeds.items()}
    model = computing(nodes, fed, [str(wanted.name)], opsets, constants)
    try:
        return np.asarray(run(model, fed)[0])
    # onnxruntime raises one class per status code, without a common base; what can't be run isn't what it looks like.
    except Exception:  # noqa: BLE001
        return None


def _between(
    wanted: onnx_ir.Value, feeds: Mapping[onnx_ir.Value, Array], sizes: Mapping[str, int]
) -> tuple[list[onnx_ir.Node], dict[str, Array]] | None:
    """The nodes that lead to a value, in an order in which they can be run, and the constants they use."""
    nodes: dict[onnx_ir.Node, None] = {}
    constants: dict[str, Array] = {}
    waiting: list[tuple[onnx_ir.Value, bool]] = [(wanted, False)]
    while waiting:
        value, ready = waiting.pop()
        if value in feeds or value.name in constants:
            continue
        producer = value.producer()
        if producer is None or producer.op_type == "Constant":
            constant = constant_of(value)
            if constant is None:
                return None
            constants[str(value.name)] = constant
        elif producer.op_type == "Shape" and (shape := _shape(producer, feeds, sizes)) is not None:
            constants[str(value.name)] = shape
        elif ready:
            nodes[producer] = None
        elif producer not in nodes:
            if len(nodes) > _LARGEST:
                return None
            waiting.append((value, True))
            waiting += [(item, False) for item in producer.inputs if item is not None]
    return list(nodes), constants


def _shape(node: onnx_ir.Node, feeds: Mapping[onnx_ir.Value, Array], sizes: Mapping[str, int]) -> Array | None:
    """What Shape gives, where all sizes are known."""
    value = node.inputs[0]
    if value is None or value in feeds or value.shape is None:
        return None
    found = [size if isinstance(size, int) else sizes.get(str(size.value)) for size in value.shape]
    if None in found:
        return None
    return np.asarray(found[attribute(node, "start") : attribute(node, "end")], np.int64)

"""A part of a graph run on its own, to find out whether it computes what it looks like."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir

from conrepair.importer.constants import run
from conrepair.importer.values import Array
from conrepair.onnx_passes.computing import computing, leading_to
from conrepair.onnx_passes.defaults import attribute

__all__ = ["compute"]


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
    found = leading_to([wanted], feeds, lambda node: _shape(node, feeds, sizes or {}))
    if found is None:
        return None
    fed = {str(value.name): array for value, array in feeds.items()}
    model = computing(found.nodes, fed, [str(wanted.name)], opsets, found.constants)
    try:
        return np.asarray(run(model, fed)[0])
    # onnxruntime raises one class per status code, without a common base; what can't be run isn't what it looks like.
    except Exception:  # noqa: BLE001
        return None


def _shape(node: onnx_ir.Node, feeds: Mapping[onnx_ir.Value, Array], sizes: Mapping[str, int]) -> Array | None:
    """What Shape gives, where all sizes are known."""
    value = node.inputs[0] if node.op_type == "Shape" else None
    if value is None or value in feeds or value.shape is None:
        return None
    found = [size if isinstance(size, int) else sizes.get(str(size.value)) for size in value.shape]
    if None in found:
        return None
    return np.asarray(found[attribute(node, "start") : attribute(node, "end")], np.int64)

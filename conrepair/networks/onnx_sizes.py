"""Sizes that a network computes when it runs, and that follow from the sizes of its inputs all the same."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir

from conrepair.graph.layer_graph import Array
from conrepair.networks.onnx_source import Source
from conrepair.onnx_passes.fold_constants import fold_constants
from conrepair.onnx_passes.infer_shapes import static_shape

__all__ = ["follow_sizes"]

_SMALL = 1024  # bytes; weights beyond aren't sizes


def follow_sizes(source: Source) -> Mapping[str, Array]:
    """Write shapes that are known once computed sizes are onto the graph's values, in place.

    Returns:
        The numbers of those values that depend on inputs through their sizes only, by name.
    """
    unknown = [value for value in source.variable if static_shape(value) is None]
    if not unknown:
        return {}
    folded = source.model.clone()
    _hide_weights(folded.graph)
    fold_constants(folded)
    known = onnx_ir.convenience.create_value_mapping(folded.graph)
    for value in unknown:
        other = known.get(str(value.name))
        if other is not None and other.shape is not None:
            value.shape = other.shape
            value.type = value.type or other.type
    return {
        name: value.const_value.numpy()
        for name, value in folded.graph.initializers.items()
        if value.const_value is not None and source.values.get(name) in source.variable
    }


def _hide_weights(graph: onnx_ir.Graph) -> None:
    """Make inputs of the weights, in place, so that nothing is computed from them."""
    for name, value in list(graph.initializers.items()):
        tensor = value.const_value
        if tensor is not None and tensor.nbytes > _SMALL:
            del graph.initializers[name]
            value.const_value = None
            graph.inputs.append(value)

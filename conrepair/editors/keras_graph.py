"""A Keras model's graph without running it: from the symbols that Keras has for its tensors."""

from __future__ import annotations

from typing import Any

import keras

from conrepair.graph.layer_graph import LayerGraph, Tensor
from conrepair.networks.keras_graph import KerasOrigin, Masks, layer_graph
from conrepair.networks.keras_steps import is_functional, steps_of
from conrepair.runtime.errors import ModelLoadError

__all__ = ["graph_of_network"]


def graph_of_network(network: Any) -> tuple[LayerGraph, dict[str, KerasOrigin], dict[str, tuple[int, ...]]]:
    """The layers of a model; sizes that it leaves open are one.

    Returns:
        The graph, where each node comes from by the node's name, and the ids of Keras's symbols by tensors' names.

    Raises:
        ModelLoadError: if its layers are called by code of its own.
    """
    if not is_functional(network):
        raise ModelLoadError(f"{network.name} is a subclassed model: its layers are called by code of its own.")
    steps = steps_of(network)
    symbols = {name: next(iter(found.values())) for name, found in steps.symbols.items()}
    tensors = {name: _tensor(name, symbol) for name, symbol in symbols.items()}
    open_sizes = frozenset(name for name, symbol in symbols.items() if None in tuple(symbol.shape)[1:])
    masks = Masks({}, {step.name: () for step in steps.calls})  # most are arguments, as Keras writes calls
    graph, origins = layer_graph(steps, tensors, masks, open_sizes)
    return graph, origins, {name: tuple(found) for name, found in steps.symbols.items()}


def _tensor(name: str, symbol: Any) -> Tensor:
    shape = tuple(1 if size is None else int(size) for size in symbol.shape)
    return Tensor(name, shape, str(keras.backend.standardize_dtype(symbol.dtype)))

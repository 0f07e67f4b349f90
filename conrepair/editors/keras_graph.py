"""List a Keras model's layers in the neutral vocabulary, those of nested models included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from conrepair.editors.keras_operators import (
    FUSING,
    function_attributes,
    function_of,
    layout_of,
    meaning_of,
    variables_of,
)
from conrepair.frameworks.keras import functional_of
from conrepair.graph.layer_graph import Array, LayerGraph, Node, Parameter, Tensor

__all__ = ["ACTIVATION", "LINEAR", "graph_of_network"]

ACTIVATION = "/activation"
LINEAR = ":inside"  # as networks of Keras files call what lies in front of a layer's activation


def graph_of_network(network: Any) -> tuple[LayerGraph, dict[str, Any], dict[str, tuple[int, ...]]]:
    """The layers of a model.

    Returns:
        The graph, each node's layer by the node's name, and the ids of Keras's tensors by name: the one that is
        computed first, then those that stand for it in other models, nested or around.
    """
    listing = _Listing()
    names = {id(tensor): tensor.name for tensor in network.inputs}
    for tensor in network.inputs:
        listing.tensors[tensor.name] = _tensor(tensor.name, tensor)
    known = listing.walk(functional_of(network), names, "")
    outputs = tuple(known[id(tensor)] for tensor in functional_of(network).outputs)
    inputs = tuple(tensor.name for tensor in network.inputs)
    graph = LayerGraph(inputs, outputs, listing.tensors, tuple(listing.nodes))
    return graph, listing.layers, {name: tuple(ids) for name, ids in listing.ids.items()}


class _Listing:
    """Collects nodes while models are walked through."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.tensors: dict[str, Tensor] = {}
        self.layers: dict[str, Any] = {}
        self.ids: dict[str, dict[int, None]] = {}

    def walk(self, network: Any, names: Mapping[int, str], prefix: str) -> dict[int, str]:
        """List one model.

        Args:
            network: With a graph of calls.
            names: Of its input tensors, by their ids.
            prefix: For the nodes' names.

        Returns:
            Names of all its tensors, by their ids.
        """
        known = dict(names)
        self._note(known)
        for depth in sorted(network._nodes_by_depth, reverse=True):
            for call in network._nodes_by_depth[depth]:
                layer = call.operation
                fed = tuple(known.get(id(tensor), "") for tensor in call.input_tensors)
                if isinstance(layer, keras.layers.InputLayer):
                    continue
                if isinstance(layer, keras.Model):
                    inner = functional_of(layer)
                    aliases = {id(tensor): name for tensor, name in zip(inner.inputs, fed, strict=True)}
                    found = self.walk(inner, aliases, f"{prefix}{layer.name}/")
                    given = [found[id(tensor)] for tensor in inner.outputs]
                else:
                    given = self._add(layer, call, fed, prefix)
                made = {id(tensor): name for tensor, name in zip(call.output_tensors, given, strict=True)}
                self._note(made)
                known.update(made)
        return known

    def _note(self, names: Mapping[int, str]) -> None:
        for key, name in names.items():
            self.ids.setdefault(name, {})[key] = None

    def _add(self, layer: Any, call: Any, fed: tuple[str, ...], prefix: str) -> list[str]:
        name = prefix + layer.name
        while name in self.layers:
            name += "'"  # another call of a shared layer
        outputs = [name if not place else f"{name}:{place}" for place in range(len(call.output_tensors))]
        for output, tensor in zip(outputs, call.output_tensors, strict=True):
            self.tensors[output] = _tensor(output, tensor)
        op, attributes = meaning_of(layer, call)
        fused = function_of(layer) if op in FUSING else None
        last = getattr(layer, "data_format", "channels_last") == "channels_last"
        main = Node(
            name=name,
            layer=layer.name,
            op=op,
            native=type(layer).__name__,
            inputs=fed,
            outputs=tuple(outputs) if fused is None else (name + LINEAR,),
            attributes=attributes,
            parameters=_parameters(layer, op),
            channels_last=last,
        )
        self.nodes.append(main)
        self.layers[name] = layer
        if fused is not None:
            hidden = main.outputs[0]
            like = self.tensors[name]
            self.tensors[hidden] = Tensor(hidden, like.shape, like.dtype, observable=False)
            values = function_attributes(fused, len(like.shape or ()))
            self.nodes.append(
                Node(name + ACTIVATION, layer.name, fused, main.native, (hidden,), (name,), values, {}, last)
            )
            self.layers[name + ACTIVATION] = layer
        return outputs


def _parameters(layer: Any, op: str) -> dict[str, Parameter]:
    found = {}
    for role, variable in variables_of(layer, op).items():
        if keras.backend.is_float_dtype(variable.dtype):
            convert = layout_of(layer, op, role)[0]
            shape = tuple(convert(np.empty(variable.shape, np.float32)).shape)
            found[role] = Parameter(variable.path, shape, str(variable.dtype), _loader(variable, convert))
    return found


def _loader(variable: Any, convert: Callable[[Array], Array]) -> Callable[[], Array]:
    return lambda: np.ascontiguousarray(convert(np.asarray(variable.numpy(), np.float32)))


def _tensor(name: str, tensor: Any) -> Tensor:
    shape = tuple(1 if size is None else int(size) for size in tensor.shape)
    return Tensor(name, shape, str(keras.backend.standardize_dtype(tensor.dtype)))

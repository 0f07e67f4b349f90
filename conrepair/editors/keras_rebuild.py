"""Build a Keras model anew with some of its layers, and of their calls, changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras

from conrepair.editors.keras_graph import functional_of

__all__ = ["Changes", "rebuild"]

Call = Callable[[Any, Sequence[Any], Any], Any]
"""From a layer, and the positional and named arguments of its call, to the result."""


@dataclass
class Changes:
    """What shall be different; layers are the ids of those of the old model.

    Attributes:
        layers: What makes the new layer.
        calls: What happens instead of the layer's call.
        behind: What happens to the layer's result, in order.
        inputs: What readers get for an input of the model, by name, from all the inputs.
        weights: What copies the weights, where the new layer has others.
        outputs: Which of the old outputs come in which place.
    """

    layers: dict[int, Callable[[], Any]] = field(default_factory=dict)
    calls: dict[int, Call] = field(default_factory=dict)
    behind: dict[int, list[Callable[[Any], Any]]] = field(default_factory=dict)
    inputs: dict[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)
    weights: dict[int, Callable[[Any, Any], None]] = field(default_factory=dict)
    outputs: list[int] | None = None

    def __bool__(self) -> bool:
        return bool(self.layers or self.calls or self.behind or self.inputs or self.outputs)


def rebuild(network: Any, changes: Changes) -> Any:
    """A new model with its own weights.

    Args:
        network: The old one.
        changes: What's different.
    """
    builder = _Builder(changes)
    new = builder.model(network, outermost=True)
    builder.copy_weights()
    if changes.outputs is not None:
        leaves = keras.tree.flatten(new.outputs)
        arranged = [leaves[place] for place in changes.outputs]
        new = keras.Model(new.input, keras.tree.pack_sequence_as(network.output, arranged), name=new.name)
    return new


class _Builder:
    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._old: dict[int, Any] = {}  # layers of the old model, by the ids of the new ones
        self._new: dict[int, Any] = {}  # and the other way round
        self._fed: dict[int, Any] = {}  # what stands for an input, by the input's id

    def model(self, network: Any, *, outermost: bool = False) -> Any:
        if isinstance(network, keras.Sequential) and self._changes_calls(network):
            network = keras.Model(network.inputs, network.outputs, name=network.name)
        if isinstance(network, keras.Sequential):
            return keras.models.clone_model(network, clone_function=self._layer)
        inputs = keras.tree.map_structure(
            lambda tensor: keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=tensor.name), network.input
        )
        if outermost:
            self._feed({tensor.name: tensor for tensor in keras.tree.flatten(inputs)})
        return keras.models.clone_model(network, inputs, clone_function=self._layer, call_function=self._call)

    def copy_weights(self) -> None:
        for key, new in self._new.items():
            old = self._old[id(new)]
            if key in self._changes.weights:
                self._changes.weights[key](old, new)
            elif not isinstance(old, keras.Model) and getattr(old, "weights", None) and new.built:
                new.set_weights(old.get_weights())

    def _feed(self, inputs: dict[str, Any]) -> None:
        for name, tensor in inputs.items():
            change = self._changes.inputs.get(name)
            if change is not None:
                self._fed[id(tensor)] = change(inputs)

    def _changes_calls(self, network: Any) -> bool:
        changed = {*self._changes.calls, *self._changes.behind}
        return any(
            id(layer) in changed or (isinstance(layer, keras.Model) and self._changes_calls(layer))
            for layer in functional_of(network).operations
        )

    def _layer(self, old: Any) -> Any:
        if id(old) not in self._new:
            make = self._changes.layers.get(id(old))
            if make is not None:
                new = make()
            elif isinstance(old, keras.Model):
                new = self.model(old)
            else:
                new = type(old).from_config(old.get_config())
            self._new[id(old)] = new
            self._old[id(new)] = old
        return self._new[id(old)]

    def _call(self, new: Any, *arguments: Any, **named: Any) -> Any:
        arguments, named = keras.tree.map_structure(lambda item: self._fed.get(id(item), item), (arguments, named))
        key = id(self._old[id(new)])
        instead = self._changes.calls.get(key)
        if type(new) is not type(self._old[id(new)]):
            named = {}  # another class has other options of its call
        result = new(*arguments, **named) if instead is None else instead(new, arguments, named)
        for change in self._changes.behind.get(key, []):
            result = change(result)
        return result

"""Build a Keras model anew with some of its layers, and of their calls, changed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import keras

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.keras.load.framework import functional_of

Call = Callable[[Any, Sequence[Any], Any], Any]
"""From a layer, and the positional and named arguments of its call, to the result."""


@dataclass(frozen=True)
class KerasGraft:
    """What is read in place of a tensor.

    Attributes:
        compute: From what it reads, by name, to what is read.
        reads: By name, the ids of the old tensors that are the same one in some model; its own may be one.
        readers: Ids of the only calls that read it; all, and the model's outputs, if there are none.
    """

    compute: Callable[[Mapping[str, Any]], Any]
    reads: Mapping[str, tuple[int, ...]]
    readers: frozenset[int] = frozenset()


@dataclass
class KerasChanges:
    """What shall be different; layers and calls are the ids of those of the old model.

    Attributes:
        layers: What makes the new layer of all calls of an old one, or of one call alone.
        calls: What happens instead of a call.
        grafts: What is read in place of an old tensor, by its id, in order: each reads what the one before gives.
        inputs: What readers get for an input of the model, by name, from all the inputs.
        weights: What copies the weights, where the new layer, of all calls or of one, has others.
        outputs: Which of the old outputs come in which place.
        shapes: Sizes of the model's inputs, by name; None for those that stay.
        more: The ids of tensors that are outputs too, each in whatever model.
    """

    layers: dict[int, Callable[[], Any]] = field(default_factory=dict)
    calls: dict[int, Call] = field(default_factory=dict)
    grafts: dict[int, list[KerasGraft]] = field(default_factory=dict)
    inputs: dict[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)
    weights: dict[int, Callable[[Any, Any], None]] = field(default_factory=dict)
    outputs: list[int] | None = None
    shapes: dict[str, Sequence[int | None]] = field(default_factory=dict)
    more: list[tuple[int, ...]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(getattr(self, item.name) for item in fields(self))


def rebuild(network: Any, changes: KerasChanges) -> Any:
    """A new model with its own weights.

    Args:
        network: The old one.
        changes: What's different.
    """
    builder = _ModelBuilder(changes)
    new = builder.model(network, outermost=True)
    builder.copy_weights()
    if changes.outputs is not None or changes.more:
        leaves = keras.tree.flatten(new.outputs)
        count = len(leaves) - len(changes.more)
        order = range(count) if changes.outputs is None else changes.outputs
        arranged = _arranged(network.output, [leaves[place] for place in order], order)
        new = keras.Model(new.input, _with_more(arranged, leaves[count:]), name=new.name)
    if network.compiled and not new.compiled:
        new.compile_from_config(network.get_compile_config())
    return new


def _arranged(structure: Any, leaves: Sequence[Any], places: Sequence[int]) -> Any:
    """Outputs in the structure of the old ones; without those that are left out, where that's a flat one."""
    if len(leaves) == len(keras.tree.flatten(structure)):
        return keras.tree.pack_sequence_as(structure, leaves)
    parts = list(structure.values() if isinstance(structure, dict) else structure)
    if len(parts) != len(keras.tree.flatten(structure)):
        raise NotEditableError("the outputs are structures within a structure: none can be left out")
    if isinstance(structure, dict):
        names = sorted(structure)
        return {names[place]: leaf for place, leaf in zip(places, leaves, strict=True)}
    return leaves[0] if len(leaves) == 1 else list(leaves)


def _with_more(structure: Any, more: Sequence[Any]) -> Any:
    """Outputs and some more; in a dictionary by the names of their layers."""
    if not more:
        return structure
    if isinstance(structure, dict):
        return structure | {tensor._keras_history.operation.name: tensor for tensor in more}
    return [*(structure if isinstance(structure, list | tuple) else [structure]), *more]


class _ModelBuilder:
    def __init__(self, changes: KerasChanges) -> None:
        self._changes = changes
        self._old: dict[int, Any] = {}  # layers of the old model, by the ids of the new ones
        self._new: dict[int, Any] = {}  # and the other way round; those of one call alone by the call's
        self._own: dict[tuple[int, type, str], Any] = {}  # by the old layer, and what's wanted in its place

    def model(self, network: Any, *, outermost: bool = False) -> Any:
        shapes, more = (self._changes.shapes, self._changes.more) if outermost else ({}, [])
        if isinstance(network, keras.Sequential) and (self._changes_calls(network) or shapes or more):
            network = keras.Model(network.inputs, network.outputs, name=network.name)
        if isinstance(network, keras.Sequential):
            return keras.models.clone_model(network, clone_function=self._layer)

        def declared(tensor: Any) -> Any:
            wanted = shapes.get(tensor.name, tensor.shape)
            shape = [size if new is None else new for size, new in zip(tensor.shape, wanted, strict=True)]
            return keras.Input(batch_shape=shape, dtype=tensor.dtype, name=tensor.name)

        inputs = keras.tree.map_structure(declared, network.input)
        leaves = keras.tree.flatten(inputs)
        fed = list(leaves)
        if outermost:
            named = {tensor.name: tensor for tensor in leaves}
            fed = [self._changes.inputs.get(tensor.name, lambda known, t=tensor: t)(named) for tensor in leaves]
        run = _Recomputation(self._changes.grafts, self._call)
        results = run.results(functional_of(network), fed)
        if more:
            results += [run.computed(keys) for keys in more]
            return keras.Model(inputs, results, name=network.name)
        return keras.Model(inputs, keras.tree.pack_sequence_as(network.output, results), name=network.name)

    def copy_weights(self) -> None:
        for key, new in self._new.items():
            old = self._old[id(new)]
            if key in self._changes.weights:
                self._changes.weights[key](old, new)
                continue
            if not isinstance(old, keras.Model) and getattr(old, "weights", None) and new.built:
                new.set_weights(old.get_weights())
            _finish(old, new)

    def _changes_calls(self, network: Any) -> bool:
        functional = functional_of(network)
        calls = [call for depth in functional._nodes_by_depth.values() for call in depth]
        tensors = {id(tensor) for call in calls for tensor in call.output_tensors}
        changed = {*self._changes.calls, *self._changes.layers}
        return (
            bool(tensors & set(self._changes.grafts))
            or any(id(call) in changed for call in calls)
            or any(isinstance(layer, keras.Model) and self._changes_calls(layer) for layer in functional.operations)
        )

    def _layer_of(self, call: Any) -> Any:
        """The new layer of a call: one of its own, if it alone has another."""
        old, make = call.operation, self._changes.layers.get(id(call))
        if make is None:
            return self._layer(old)
        if id(call) not in self._new:
            wanted = make()
            # Calls that want the same share it, as the old calls shared the old one.
            said = (id(old), type(wanted), repr(wanted.get_config()))
            if said not in self._own:
                count = sum(layer == id(old) for layer, _, _ in self._own) + 1
                renamed = {**wanted.get_config(), "name": f"{old.name}_{count}"}
                self._own[said] = type(wanted).from_config(renamed)
            self._new[id(call)] = self._own[said]
            self._old[id(self._own[said])] = old
        return self._new[id(call)]

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

    def _call(self, call: Any, arguments: Sequence[Any], named: Any) -> Any:
        new, old = self._layer_of(call), call.operation
        instead = self._changes.calls.get(id(call))
        if type(new) is not type(old):
            named = {}  # another class has other options of its call
        return new(*arguments, **named) if instead is None else instead(new, arguments, named)


def _finish(old: Any, new: Any) -> None:
    """Give a layer what it has besides weights: its assets (a vocabulary), and what it computes from weights."""
    if type(new) is not type(old):
        return
    if isinstance(old, keras.Layer) and hasattr(old, "save_assets"):
        with tempfile.TemporaryDirectory() as folder:
            old.save_assets(folder)
            new.load_assets(folder)
    if hasattr(new, "finalize_state"):
        new.finalize_state()


class _Recomputation:
    """Computes a model's calls anew; each as soon as what it reads is there, which grafts may change."""

    def __init__(
        self, grafts: Mapping[int, Sequence[KerasGraft]], call: Callable[[Any, Sequence[Any], Any], Any]
    ) -> None:
        self._grafts, self._call = grafts, call
        self._given: dict[int, Any] = {}  # new tensors by the ids of the old ones, before grafts
        self._grafted: dict[tuple[int, int, int], Any] = {}

    def results(self, functional: Any, fed: Sequence[Any]) -> list[Any]:
        self._given.update(zip(map(id, functional.inputs), fed, strict=True))
        depths = functional._nodes_by_depth
        waiting = [call for depth in sorted(depths, reverse=True) for call in depths[depth] if not call.is_input]
        while waiting:
            left = [call for call in waiting if not self._done(call)]
            if len(left) == len(waiting):
                break  # of what can't be computed, nothing may be needed
            waiting = left
        results = [self._value(id(tensor), None) for tensor in functional.outputs]
        if any(tensor is None for tensor in results):
            raise NotEditableError("what is put in would read what is computed from it, or what's in another model")
        return results

    def computed(self, keys: Sequence[int]) -> Any:
        """What stands for an old tensor, once results are there."""
        found = self._first(keys)
        if found is None:
            raise NotEditableError("what shall be an output is in another model, one nested in this one")
        return found

    def _done(self, call: Any) -> bool:
        read = {id(tensor): self._value(id(tensor), id(call)) for tensor in call.input_tensors}
        if any(tensor is None for tensor in read.values()):
            return False
        arguments, named = call.arguments.fill_in(read)
        made = self._call(call, arguments, named)
        self._given.update(zip(map(id, call.output_tensors), keras.tree.flatten(made), strict=False))
        return True

    def _value(self, key: int, reader: int | None) -> Any:
        """What a call reads for an old tensor; None while it can't be computed."""
        value = self._given.get(key)
        for place, graft in enumerate(self._grafts.get(key, ())):
            if graft.readers and reader not in graft.readers:
                continue
            known = (key, place, id(value))
            if known not in self._grafted:
                read = {name: value if key in ids else self._first(ids) for name, ids in graft.reads.items()}
                if any(item is None for item in read.values()):
                    return None
                self._grafted[known] = graft.compute(read)
            value = self._grafted[known]
        return value

    def _first(self, keys: Sequence[int]) -> Any:
        return next((found for key in keys if (found := self._value(key, None)) is not None), None)

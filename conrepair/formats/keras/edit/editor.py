"""Keras: weights are assigned; for other changes the model is built anew, with other configurations or calls."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from conrepair.formats.editing.editor import Editor, NotEditableError
from conrepair.formats.editing.lowering_windows import GLOBAL_POOLS, POOLS
from conrepair.formats.editing.operation import Operation, unfused
from conrepair.formats.keras.edit.graft import KerasWriter
from conrepair.formats.keras.edit.kept import carry_over
from conrepair.formats.keras.edit.rebuild import KerasChanges, KerasGraft, rebuild
from conrepair.formats.keras.edit.settings import activation_layer, function_name, window_config
from conrepair.formats.keras.load.framework import load_keras
from conrepair.formats.keras.read.graph import KerasOrigin, Masks, layer_graph
from conrepair.formats.keras.read.ops import BINARY
from conrepair.formats.keras.read.steps import is_functional, steps_of
from conrepair.formats.models.model import Model
from conrepair.formats.networks.parts import INSIDE
from conrepair.formats.networks.stored import StoredParameter
from conrepair.ground.graph.layer_graph import Array, Attribute, LayerGraph, Node, Tensor
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of, whole_output

# A Keras model's graph without running it: from the symbols that Keras has for its tensors.


def _graph_of_network(network: Any) -> tuple[LayerGraph, dict[str, KerasOrigin], dict[str, tuple[int, ...]]]:
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


_BINARY = {op: getattr(keras.layers, name) for name, op in BINARY.items() if hasattr(keras.layers, name)}
_OPERANDS = 2  # of what Subtract takes
_WINDOWS = {"Conv", *POOLS}
_POOLS = {  # what Keras calls them, and whether of everything
    operator: (word, pools is GLOBAL_POOLS)
    for pools in (POOLS, GLOBAL_POOLS)
    for operator, word in zip(pools, ("Max", "Average"), strict=True)
}


class KerasEditor(Editor):
    """Changes of a functional or sequential model; layers are called as they are named."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._network = load_keras(model)
        self._changes = KerasChanges()
        self.graph, self._origins, self._ids = _graph_of_network(self._network)
        calls = [origin.step.call for origin in self._origins.values() if not origin.place]
        self._often = Counter(map(id, calls))  # a call in a model that is called itself is there several times
        self._shared = Counter(id(call.operation) for call in {id(call): call for call in calls}.values())

    def _layer(self, node: Node) -> Any:
        return self._origins[node.name].step.operation

    def _is_fused(self, node: Node) -> bool:
        """Whether it's the activation that a layer has as its argument."""
        origin = self._origins[node.name]
        function = getattr(origin.step.operation, "activation", None)
        return 0 < origin.place == origin.count - 1 and function not in {None, keras.activations.linear}

    def _call(self, node: Node) -> Any:
        """The call that a node is of; a change of it alone must be possible."""
        call = self._origins[node.name].step.call
        if self._often[id(call)] > 1:
            self.refuse(f"{node.name} is in a model that is called several times: a change would be one of all calls")
        return call

    def _whole_call(self, node: Node) -> Any:
        """The call that a node is, but for its activation."""
        origin = self._origins[node.name]
        if origin.count > (2 if self._is_fused(self._parts(node)[-1]) else 1):
            self.refuse(f"{node.name} is computed by {node.layer} together with other operators")
        return self._call(node)

    def _parts(self, node: Node) -> list[Node]:
        """The operators of a node's call."""
        step = self._origins[node.name].step
        return [item for item in self.graph.nodes if self._origins[item.name].step is step]

    def _changed(self, node: Node) -> int:
        """What stands for a node's layer in the changes: the layer, or this call where it has others, too."""
        layer = self._layer(node)
        return id(layer) if self._shared[id(layer)] == 1 else id(self._call(node))

    def _set_parameter(self, node: Node, role: str, array: Array) -> None:
        """Assign to the layer's variable, which all of its calls read."""
        parameter = node.parameters.get(role)
        holders = parameter.holders if isinstance(parameter, StoredParameter) else (None,)
        if not all(isinstance(variable, keras.Variable) for variable in holders):
            self.refuse(f"{node.name}: {role} isn't stored in a variable of its own")
        for variable, numbers in zip(holders, self.stored(node, role, array), strict=True):
            variable.assign(numbers)

    def _give_bias(self, node: Node, array: Array) -> None:
        """The layer is made anew with one."""
        self._whole_call(node)
        if self._layer(node).get_config().get("use_bias") is not False:
            self._refuse_bias(node)
        self._configure(node, {"use_bias": True})

        def copy(old: Any, new: Any) -> None:
            held = {variable.name: variable for variable in old.weights}
            for variable in new.weights:
                variable.assign(held.get(variable.name, array))

        self._changes.weights[self._changed(node)] = copy

    def set_attributes(self, node: Node, changes: Mapping[str, Attribute]) -> None:
        """Change the configuration; what it can't say follows the layer."""
        layer = self._layer(node)
        if self._is_fused(node) or isinstance(layer, keras.layers.Activation):
            self._unfuse(node, node.op, {**node.attributes, **changes})
            return
        if node.op in _WINDOWS and changes.keys() <= {"strides", "pads", "dilations"}:
            self._configure(node, window_config(node, layer, self.graph.tensors[node.inputs[0]].shape, changes))
            changes = {}
        for name, value in changes.items():
            config = self._config(node, layer, name, value)
            if config is None:
                self.refuse(f"{node.native} has no {name}")
            self._configure(node, config)

    def set_operator(self, node: Node, operator: str, attributes: Mapping[str, Attribute]) -> None:
        """Another class of the same name."""
        layer = self._layer(node)
        if self._is_fused(node):
            self._unfuse(node, operator, attributes)
            return
        if operator == "InstanceNormalization":
            self._normalize_itself(node)
        elif not isinstance(layer, keras.Layer):
            self.refuse(f"{node.name} is a function")
        elif operator in _BINARY and node.op in _BINARY:
            count = len(self._origins[node.name].step.inputs)
            if operator == "Sub" and count != _OPERANDS:
                self.refuse(f"{node.name} has {count} operands")
            kind = _BINARY[operator]
            self._changes.layers[self._changed(node)] = lambda: kind(name=layer.name)
        elif node.op in _POOLS:
            if operator not in _POOLS or _POOLS[operator][1] != _POOLS[node.op][1]:
                self.refuse(f"{node.native} can't become {operator}")
            kind = getattr(keras.layers, node.native.replace(_POOLS[node.op][0], _POOLS[operator][0]))
            self._changes.layers[self._changed(node)] = lambda: kind.from_config(layer.get_config())
        else:
            self._whole_call(node)
            new = activation_layer(operator, attributes, layer.name)
            self._changes.layers[self._changed(node)] = lambda: new

    def remove(self, node: Node, index: int = 0) -> None:
        """An activation of a layer becomes linear; of other layers, the call is left out."""
        if self._is_fused(node):
            self._configure(node, {"activation": "linear"})
            return
        call = self._whole_call(node)
        self._changes.calls[id(call)] = lambda _, arguments, __: keras.tree.flatten(arguments)[index]

    def graft(self, tensor: str, operations: Sequence[Operation], label: str, readers: Sequence[Node] = ()) -> None:
        """Layers whose results are read in place of a tensor, when the model is built anew."""
        inside = None if readers else unfused(self.graph, INSIDE, tensor, operations)
        if inside is not None and self._is_fused(inside[0]):
            activation, tensor, operations = inside
            self._configure(activation, {"activation": "linear"})
        read = {item for operation in operations for item in operation.inputs if isinstance(item, str) and item}
        name = re.sub(r"[^\w.-]", "_", f"{tensor}_{label}", flags=re.ASCII)

        def compute(known: Mapping[str, Any]) -> Any:
            return KerasWriter(name).compute(operations, known.__getitem__)

        wanted = frozenset(id(self._call(item)) for item in readers)
        graft = KerasGraft(compute, {item: self._same(item) for item in read}, wanted)
        self._changes.grafts.setdefault(self._same(tensor)[0], []).append(graft)

    def _same(self, tensor: str) -> tuple[int, ...]:
        if tensor not in self._ids:
            self.refuse(f"the model has no tensor {tensor}")
        if tensor in self.graph.producers:
            self._call(self.graph.producers[tensor])
        return self._ids[tensor]

    def swap_inputs(self, node: Node, one: int, two: int) -> None:
        """Call the layer with the operands in another order."""

        def call(layer: Any, arguments: Sequence[Any], named: Any) -> Any:
            leaves = keras.tree.flatten(arguments)
            leaves[one], leaves[two] = leaves[two], leaves[one]
            return layer(*keras.tree.pack_sequence_as(arguments, leaves), **named)

        self._changes.calls[id(self._whole_call(node))] = call

    def exchange_reads(self, one: str, two: str, readers: Sequence[Node]) -> None:
        """Each of both is put in the other's place for these layers, when the model is built anew."""
        wanted = frozenset(id(self._call(item)) for item in readers)
        for here, there in ((one, two), (two, one)):
            graft = KerasGraft(operator.itemgetter(there), {there: self._same(there)}, wanted)
            self._changes.grafts.setdefault(self._same(here)[0], []).append(graft)

    def add_output(self, tensor: str, operations: Sequence[Operation] = (), place: int | None = None) -> None:
        """Behind the others, in a list; in a dictionary of outputs, by its layer's name."""
        if operations:
            self.refuse(f"{tensor} can't be computed as an output of its own")
        self._changes.more.append(self._same(tensor))

    def drop_output(self, place: int) -> None:
        """By position; a structure of outputs loses the entry."""
        order = self._order()
        del order[self._output_now(place)]
        self._left_out.add(place)
        self._changes.outputs = order

    def exchange_outputs(self, one: int, two: int) -> None:
        """By position, and by name: an output is called by its layer, so these exchange their names."""
        order, first_place, second_place = self._order(), self._output_now(one), self._output_now(two)
        order[first_place], order[second_place] = order[second_place], order[first_place]
        self._changes.outputs = order
        nodes = [self.graph.producers.get(self.graph.outputs[place]) for place in (one, two)]
        first, second = (None if node is None else self._layer(node) for node in nodes)
        if first is not None and second is not None and first is not second:
            self._make(id(first), first, {"name": second.name})
            self._make(id(second), second, {"name": first.name})

    def _order(self) -> list[int]:
        """Which of the old outputs come in which place by now."""
        known = self._changes.outputs
        return list(range(len(self.graph.outputs)) if known is None else known)

    def exchange_inputs(self, one: int, two: int) -> None:
        """Exchange the readers of two tensors."""
        first, second = self.graph.inputs[one], self.graph.inputs[two]
        self._changes.inputs[first] = lambda inputs: inputs[second]
        self._changes.inputs[second] = lambda inputs: inputs[first]

    def _set_shape(self, node: Node, shape: tuple[int, ...]) -> None:
        """Other layers follow what they read."""
        if isinstance(self._layer(node), keras.layers.Reshape):
            self._configure(node, {"target_shape": shape[1:]})

    def _declare_inputs(self, shapes: Mapping[str, Sequence[int | None]]) -> None:
        """The model is called anew with them."""
        self._changes.shapes |= shapes

    def save(self, folder: Path, stem: str) -> Model:
        """A .keras file."""
        network = self._network
        if self._changes:
            try:
                network = rebuild(self._network, self._changes)
            # Layers check their arguments with errors of any type.
            except Exception as error:
                raise NotEditableError(f"the model can't be rebuilt: {error}") from error
        path = folder / f"{stem}.keras"
        with whole_output(path) as temporary:
            network.save(temporary)
            carry_over(Path(self._model.path), temporary, rebuilt=bool(self._changes))
        return Model("keras", str(path), sha256_of(path), inputs=self._model.inputs, trust=self._model.trust)

    def _configure(self, node: Node, config: Mapping[str, Any]) -> None:
        """Make a node's layer anew with other entries of its configuration."""
        self._make(self._changed(node), self._layer(node), config)

    def _make(self, key: int, layer: Any, config: Mapping[str, Any]) -> None:
        before = self._changes.layers.get(key)
        old = before() if before is not None else layer
        kind, merged = type(old), {**old.get_config(), **config}
        self._changes.layers[key] = lambda: kind.from_config(merged)

    def _config(self, node: Node, layer: Any, name: str, value: Attribute) -> dict[str, Any] | None:
        """The entries that say an attribute; None where there are none."""
        names = {
            ("alpha", "LeakyReLU"): "negative_slope",
            ("alpha", "ReLU"): "negative_slope",
            ("alpha", "ELU"): "alpha",
            ("alpha", "LeakyRelu"): "negative_slope",
            ("alpha", "Elu"): "alpha",
            ("perm", "Transpose"): "axes",
            ("max", "ReLU"): "max_value",
        }
        if (name, node.native) in names:
            return {names[name, node.native]: value}
        if name in {"epsilon", "axis", "mode"} and name in layer.get_config():
            return {name: value}
        if name == "approximate" and node.native == "Gelu":
            return {"approximate": value == "tanh"}
        if name == "perm" and isinstance(value, tuple):
            return {"dims": value[1:]}
        if name == "pads" and node.op == "Pad" and isinstance(value, tuple):
            half = len(value) // 2
            return {"padding": tuple(zip(value[1 : half - 1], value[half + 1 : -1], strict=True))}
        return None

    def _unfuse(self, node: Node, operator: str, attributes: Mapping[str, Attribute]) -> None:
        """Another activation: as an argument, or where Keras has none with such attributes, behind the layer."""
        shape = self.graph.tensors[node.outputs[0]].shape
        function = function_name(operator, attributes, None if shape is None else len(shape))
        self._configure(node, {"activation": function or "linear"})
        if function is None:
            self.graft(node.outputs[0], [Operation(operator, (node.outputs[0],), attributes)], operator.lower())

    def _normalize_itself(self, node: Node) -> None:
        key, config = self._changed(node), self._layer(node).get_config()
        kept = {name: config[name] for name in ("name", "axis", "epsilon", "center", "scale")}
        self._changes.layers[key] = lambda: keras.layers.GroupNormalization(groups=-1, **kept)

        def copy(old: Any, new: Any) -> None:
            new.set_weights([np.asarray(item) for item in (old.gamma, old.beta) if item is not None])

        self._changes.weights[key] = copy


EDITOR = KerasEditor

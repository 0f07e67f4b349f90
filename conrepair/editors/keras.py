"""Keras: weights are assigned; for other changes the model is built anew, with other configurations or calls."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from conrepair.editors.editor import Editor, NotEditableError
from conrepair.editors.fused import unfused
from conrepair.editors.keras_activations import activation_layer, function_name
from conrepair.editors.keras_graft import KerasWriter
from conrepair.editors.keras_graph import ACTIVATION, LINEAR, graph_of_network
from conrepair.editors.keras_kept import carry_over
from conrepair.editors.keras_operators import layout_of, variables_of
from conrepair.editors.keras_rebuild import Changes, Graft, rebuild
from conrepair.editors.operation import Operation
from conrepair.frameworks.keras import load_keras
from conrepair.frameworks.model import Model
from conrepair.graph.layer_graph import Array, Attribute, Node
from conrepair.runtime.files import sha256_of, whole_output

__all__ = ["EDITOR", "KerasEditor"]

_BINARY = {"Add": "Add", "Sub": "Subtract", "Mul": "Multiply", "Max": "Maximum", "Min": "Minimum"}
_OPERANDS = 2  # of what Subtract takes


class KerasEditor(Editor):
    """Changes of a functional or sequential model; layers are called as they are named."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._network = load_keras(model)
        self._changes = Changes()
        self.graph, self._layers, self._ids = graph_of_network(self._network)

    def set_parameter(self, node: Node, role: str, array: Array) -> None:
        """Assign to the layer's variable."""
        layer = self._layers[node.name]
        variable = variables_of(layer, node.op)[role]
        native = layout_of(layer, node.op, role)[1](array)
        if tuple(native.shape) != tuple(variable.shape):
            self.refuse(f"{variable.path} can't be of shape {native.shape}")
        variable.assign(native)
        self.touched |= self.names(node)

    def set_attributes(self, node: Node, changes: Mapping[str, Attribute]) -> None:
        """Change the configuration; what it can't say follows the layer."""
        layer = self._layers[node.name]
        for name, value in changes.items():
            config = self._config(node, layer, name, value)
            if config is not None:
                self._configure(layer, config)
            elif node.native == "Activation" or node.name.endswith(ACTIVATION):
                self._unfuse(node, layer, {**node.attributes, name: value})
            else:
                self.refuse(f"{node.native} has no {name}")
        self.touched |= self.names(node)

    def set_operator(self, node: Node, operator: str, attributes: Mapping[str, Attribute]) -> None:
        """Another class of the same name."""
        layer = self._layers[node.name]
        if node.name.endswith(ACTIVATION):
            self._configure(layer, {"activation": function_name(operator)})
        elif operator == "InstanceNormalization":
            self._normalize_itself(layer)
        elif not isinstance(layer, keras.Layer):
            self.refuse(f"{node.name} is a function")
        elif operator in _BINARY and node.op in _BINARY:
            if operator == "Sub" and len(node.inputs) != _OPERANDS:
                self.refuse(f"{node.name} has {len(node.inputs)} operands")
            kind = getattr(keras.layers, _BINARY[operator])
            self._changes.layers[id(layer)] = lambda: kind(name=layer.name)
        elif node.op in {"MaxPool", "AveragePool", "ReduceMean", "ReduceMax"}:
            before = node.native
            after = before.replace("Max", "Average") if "Max" in before else before.replace("Average", "Max")
            kind = getattr(keras.layers, after)
            self._changes.layers[id(layer)] = lambda: kind.from_config(layer.get_config())
        else:
            new = activation_layer(operator, attributes, layer.name)
            self._changes.layers[id(layer)] = lambda: new
        self.touched |= self.names(node)

    def remove(self, node: Node, index: int = 0) -> None:
        """An activation of a layer becomes linear; of other layers, the call is left out."""
        layer = self._layers[node.name]
        if node.name.endswith(ACTIVATION):
            self._configure(layer, {"activation": "linear"})
            self.touched |= self.names(node)
            return
        self._changes.calls[id(layer)] = lambda _, arguments, __: keras.tree.flatten(arguments)[index]
        around = [self.graph.producers[name] for name in node.inputs if name in self.graph.producers]
        around += [reader for name in node.outputs for reader in self.graph.consumers[name]]
        self.touched |= {name for item in around for name in self.names(item)}

    def graft(self, tensor: str, operations: Sequence[Operation], label: str, readers: Sequence[Node] = ()) -> None:
        """Layers whose results are read in place of a tensor, when the model is built anew."""
        inside = None if readers else unfused(self.graph, LINEAR, tensor, operations)
        if inside is not None:
            activation, tensor, operations = inside
            self._configure(self._layers[activation.name], {"activation": "linear"})
        read = {item for operation in operations for item in operation.inputs if isinstance(item, str) and item}
        name = f"{tensor.replace('/', '_').replace(':', '_')}_{label}"

        def compute(known: Mapping[str, Any]) -> Any:
            writer = KerasWriter(name)
            result = writer.compute(operations, known.__getitem__)
            self.touched |= set(writer.names)
            return result

        wanted = frozenset(id(self._layers[item.name]) for item in readers)
        graft = Graft(compute, {item: self._same(item) for item in read}, wanted)
        self._changes.grafts.setdefault(self._same(tensor)[0], []).append(graft)
        self.touched |= {name for item in readers for name in self.names(item)}
        self.touched |= self.tensor_names(tensor)

    def _same(self, tensor: str) -> tuple[int, ...]:
        if tensor not in self._ids:
            self.refuse(f"the model has no tensor {tensor}")
        return self._ids[tensor]

    def swap_inputs(self, node: Node, one: int, two: int) -> None:
        """Call the layer with the operands in another order."""

        def call(layer: Any, arguments: Sequence[Any], named: Any) -> Any:
            leaves = keras.tree.flatten(arguments)
            leaves[one], leaves[two] = leaves[two], leaves[one]
            return layer(*keras.tree.pack_sequence_as(arguments, leaves), **named)

        self._changes.calls[id(self._layers[node.name])] = call
        self.touched |= self.names(node)

    def exchange_reads(self, one: str, two: str, readers: Sequence[Node]) -> None:
        """Each of both is put in the other's place for these layers, when the model is built anew."""
        wanted = frozenset(id(self._layers[item.name]) for item in readers)
        for here, there in ((one, two), (two, one)):
            graft = Graft(operator.itemgetter(there), {there: self._same(there)}, wanted)
            self._changes.grafts.setdefault(self._same(here)[0], []).append(graft)
        self.touched |= {name for item in readers for name in self.names(item)}

    def add_output(self, tensor: str) -> None:
        """Behind the others, in a list; in a dictionary of outputs, by its layer's name."""
        self._changes.more.append(self._same(tensor))
        self.touched |= self.tensor_names(tensor)

    def drop_output(self, place: int) -> None:
        """By position; a structure of outputs loses the entry."""
        order = self._order()
        del order[self._output_now(place)]
        self._left_out.add(place)
        self._changes.outputs = order
        self.touched |= self.tensor_names(self.graph.outputs[place])

    def exchange_outputs(self, one: int, two: int) -> None:
        """By position, and by name: an output is called by its layer, so these exchange their names."""
        order, first_place, second_place = self._order(), self._output_now(one), self._output_now(two)
        order[first_place], order[second_place] = order[second_place], order[first_place]
        self._changes.outputs = order
        nodes = [self.graph.producers.get(self.graph.outputs[place]) for place in (one, two)]
        first, second = (None if node is None else self._layers[node.name] for node in nodes)
        if first is not None and second is not None and first is not second:
            self._configure(first, {"name": second.name})
            self._configure(second, {"name": first.name})
        self.touched |= {item for place in (one, two) for item in self.tensor_names(self.graph.outputs[place])}

    def _order(self) -> list[int]:
        """Which of the old outputs come in which place by now."""
        known = self._changes.outputs
        return list(range(len(self.graph.outputs)) if known is None else known)

    def exchange_inputs(self, one: int, two: int) -> None:
        """Exchange who reads them."""
        first, second = self.graph.inputs[one], self.graph.inputs[two]
        self._changes.inputs[first] = lambda inputs: inputs[second]
        self._changes.inputs[second] = lambda inputs: inputs[first]
        readers = [*self.graph.consumers[first], *self.graph.consumers[second]]
        self.touched |= {name for item in readers for name in self.names(item)}

    def _set_shape(self, node: Node, shape: tuple[int, ...]) -> None:
        """Other layers follow what they read."""
        if node.native == "Reshape":
            self._configure(self._layers[node.name], {"target_shape": shape[1:]})
            self.touched |= self.names(node)

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
                raise NotEditableError(f"the model can't be built anew: {error}") from error
        path = folder / f"{stem}.keras"
        with whole_output(path) as temporary:
            network.save(temporary)
            carry_over(Path(self._model.path), temporary, rebuilt=bool(self._changes))
        return Model("keras", str(path), sha256_of(path), inputs=self._model.inputs, trust=self._model.trust)

    def _configure(self, layer: Any, config: Mapping[str, Any]) -> None:
        """Make the layer anew with other entries of its configuration."""
        before = self._changes.layers.get(id(layer))
        old = before() if before is not None else layer
        kind, merged = type(old), {**old.get_config(), **config}
        self._changes.layers[id(layer)] = lambda: kind.from_config(merged)

    def _config(self, node: Node, layer: Any, name: str, value: Attribute) -> dict[str, Any] | None:
        """The entries that say an attribute; None where there are none."""
        if node.name.endswith(ACTIVATION) or node.native == "Activation":
            return None
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
        if name == "dilations":
            return {"dilation_rate": value}
        if name == "perm" and isinstance(value, tuple):
            return {"dims": value[1:]}
        if name == "pads" and node.op == "Pad" and isinstance(value, tuple):
            half = len(value) // 2
            return {"padding": tuple(zip(value[1 : half - 1], value[half + 1 : -1], strict=True))}
        return None

    def _unfuse(self, node: Node, layer: Any, attributes: Mapping[str, Attribute]) -> None:
        """Make an activation linear and compute it behind the layer."""
        self._configure(layer, {"activation": "linear"})
        self.graft(node.outputs[0], [Operation(node.op, (node.outputs[0],), attributes)], node.op.lower())

    def _normalize_itself(self, layer: Any) -> None:
        config = layer.get_config()
        kept = {key: config[key] for key in ("name", "axis", "epsilon", "center", "scale")}
        self._changes.layers[id(layer)] = lambda: keras.layers.GroupNormalization(groups=-1, **kept)

        def copy(old: Any, new: Any) -> None:
            new.set_weights([np.asarray(item) for item in (old.gamma, old.beta) if item is not None])

        self._changes.weights[id(layer)] = copy


EDITOR = KerasEditor

"""The calls that a Keras model is made of, those of nested models in their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras


@dataclass(frozen=True)
class KerasStep:
    """One call of a layer or of a function of keras.ops.

    Attributes:
        name: Unique in the model.
        layer: "outer/inner" in nested models; the same in all calls of a shared layer.
        operation: The layer or function.
        inputs: Tensors among its arguments, in order.
        outputs: Tensors that it gives.
        call: Keras's record of the call.
        names: Tensors' names by the id of the symbolic tensor that stands for them in `call`.
    """

    name: str
    layer: str
    operation: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    call: Any = field(repr=False)
    names: dict[int, str] = field(repr=False)

    def arguments(self, values: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the call with values in the place of tensors.

        Args:
            values: Anything that gives a value for a tensor's name by `[]`.
        """

        def filled(argument: Any) -> Any:
            return values[self.names[id(argument)]] if id(argument) in self.names else argument

        recorded = self.call.arguments
        return keras.tree.map_structure(filled, recorded.args), keras.tree.map_structure(filled, recorded.kwargs)


@dataclass
class Steps:
    """A model as calls.

    Attributes:
        inputs: Tensors.
        outputs: Tensors, in the model's order.
        calls: Each behind those that it reads from.
        symbols: Keras's symbols for each tensor: where it's computed first, then those that stand for it in other
            models, nested or around.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    calls: list[KerasStep] = field(default_factory=list)
    symbols: dict[str, dict[int, Any]] = field(default_factory=dict)
    _taken: Counter[str] = field(default_factory=Counter)

    def unique(self, name: str) -> str:
        """The name with the number of its use, from the second on."""
        self._taken[name] += 1
        return f"{name}#{self._taken[name]}" if self._taken[name] > 1 else name

    def note(self, symbols: Sequence[Any], names: Mapping[int, str]) -> None:
        """Remember which tensors symbols stand for."""
        for symbol in symbols:
            self.symbols.setdefault(names[id(symbol)], {})[id(symbol)] = symbol

    def walk(self, function: Any, names: dict[int, str], prefix: str) -> None:
        """Add the calls of a graph.

        Args:
            function: Functional model.
            names: Of its inputs, by the id of the symbolic tensor; those of its other tensors are added.
            prefix: Of its layers' names.
        """
        by_depth = function._nodes_by_depth
        for depth in sorted(by_depth, reverse=True):
            for call in by_depth[depth]:
                if not call.is_input:
                    self._visit(call, names, prefix)

    def _visit(self, call: Any, names: dict[int, str], prefix: str) -> None:
        layer = prefix + call.operation.name
        inner = _inner_graph(call)
        if inner is not None:
            given = [names[id(tensor)] for tensor in call.input_tensors]
            inside = {id(tensor): name for tensor, name in zip(inner.inputs, given, strict=True)}
            self.note(inner.inputs, inside)
            self.walk(inner, inside, layer + "/")
            for outer, tensor in zip(call.outputs, inner.outputs, strict=True):
                names[id(outer)] = inside[id(tensor)]
            self.note(call.outputs, names)
            return
        name = self.unique(layer)
        outputs = tuple(name if index == 0 else f"{name}:{index}" for index in range(len(call.outputs)))
        names.update({id(tensor): output for tensor, output in zip(call.outputs, outputs, strict=True)})
        self.note(call.outputs, names)
        inputs = tuple(names[id(tensor)] for tensor in call.input_tensors)
        known = {id(tensor): names[id(tensor)] for tensor in call.input_tensors}
        self.calls.append(KerasStep(name, layer, call.operation, inputs, outputs, call, known))


def steps_of(network: Any) -> Steps:
    """Take a Functional or Sequential model apart."""
    graph = _graph(network)
    steps = Steps(())
    steps.inputs = tuple(steps.unique(tensor.name) for tensor in graph.inputs)
    names = {id(tensor): name for tensor, name in zip(graph.inputs, steps.inputs, strict=True)}
    steps.note(graph.inputs, names)
    steps.walk(graph, names, "")
    steps.outputs = tuple(names[id(tensor)] for tensor in graph.outputs)
    return steps


def is_functional(network: Any) -> bool:
    """Whether the model is a graph of calls; others run code of their own."""
    return _graph(network) is not None


def _graph(operation: Any) -> Any:
    if isinstance(operation, keras.Sequential):
        return operation._functional if type(operation).call is keras.Sequential.call else None
    functional = keras.src.models.functional.Functional
    return operation if isinstance(operation, functional) and type(operation).call is functional.call else None


def _inner_graph(call: Any) -> Any:
    """The graph of a nested model whose inputs are taken as they are given; None for anything else."""
    graph = _graph(call.operation)
    if graph is None or len(call.arguments.args) != 1:
        return None
    given, wanted = call.arguments.args[0], graph._inputs_struct
    tensors = keras.tree.flatten(given)
    one_each = len(tensors) == len(graph.inputs) == len(call.input_tensors)
    alike = isinstance(given, dict) == isinstance(wanted, dict)
    same = all(
        given.dtype == wanted.dtype and len(given.shape) == len(wanted.shape)
        for given, wanted in zip(tensors, graph.inputs, strict=False)
    )
    return graph if one_each and alike and same else None

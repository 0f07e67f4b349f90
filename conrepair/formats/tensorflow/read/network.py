"""SavedModels and frozen graphs of TensorFlow as networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import loading
from conrepair.formats.networks.network import Network
from conrepair.formats.networks.parts import nodes_of
from conrepair.formats.tensorflow.load.framework import load_function
from conrepair.formats.tensorflow.read.constants import TensorflowConstants
from conrepair.formats.tensorflow.read.inline import inlined
from conrepair.formats.tensorflow.read.operators import parts_of
from conrepair.formats.tensorflow.read.pieces import GraphPieces, data_inputs, lift_constants, operator_of
from conrepair.formats.tensorflow.read.rules import TensorflowOperation
from conrepair.formats.tensorflow.read.segment import PieceNetwork
from conrepair.formats.tensorflow.read.specs import Specs, in_order, known_specs
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Tensor
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.words import natural_order

_UNOBSERVABLE = (tf.resource, tf.variant)


def open_network(model: Model, inputs: Sequence[TensorSpec]) -> Network:
    """Open a SavedModel's signature or a frozen graph.

    Args:
        model: Of this framework.
        inputs: The model's, with concrete sizes.

    Raises:
        ModelLoadError: if it can't be loaded or taken apart.
    """
    function, owner = load_function(model)
    with loading(model, "a graph of TensorFlow's operators", passing=ModelLoadError):
        return TensorFlowNetwork(function, owner, inputs)


class TensorFlowNetwork(PieceNetwork):
    """A function's graph with its calls inlined; variables and large constants are shared by all pieces.

    TensorFlow offers no second arithmetic for a saved graph.
    """

    ordered = False

    def __init__(self, function: Any, owner: Any, inputs: Sequence[TensorSpec]) -> None:
        """Take the function apart.

        Args:
            function: From `load_function`.
            owner: Keeps the variables alive.
            inputs: With concrete sizes.
        """
        self._owner = owner
        definition = function.graph.as_graph_def()
        captures = {placeholder.op.name: external for external, placeholder in function.graph.captures}
        variables = {id(variable.handle): variable for variable in function.graph.variables}
        operators, results = inlined(definition, [tensor.name for tensor in function.graph.outputs])
        pieces = GraphPieces(lift_constants(operators, captures), captures, definition)
        placeholders = _placeholders(pieces)
        specs = known_specs(pieces, {placeholders[spec.name]: spec for spec in inputs}, results)
        self.input_names = {name: placeholders[name] for name in natural_order(placeholders)}
        names = dict(zip(sorted(function.structured_outputs), results, strict=True))  # TensorFlow flattens a dict so
        self.output_names = {name: _named(names[name]) for name in natural_order(names)}
        ends = (tuple(self.input_names.values()), tuple(self.output_names.values()))
        graph = _layer_graph(pieces, specs, ends, variables)
        places = {
            name: f"{operator_of(name)}:{_position(name)}"
            for name, tensor in graph.tensors.items()
            if tensor.observable
        }
        super().__init__(graph, pieces, places)


def _named(place: str) -> str:
    """A tensor as a graph's user calls it."""
    return place.removesuffix(":0")


def _position(name: str) -> int:
    return int(name.partition(":")[2] or 0)


def _placeholders(pieces: GraphPieces) -> dict[str, str]:
    """The operators that stand for the inputs, by the names that the function takes them by."""
    return {
        item.attr["_user_specified_name"].s.decode() or name: name
        for name, item in pieces.operators.items()
        if item.op == "Placeholder"
    }


def _layer_graph(
    pieces: GraphPieces, specs: Specs, ends: tuple[tuple[str, ...], tuple[str, ...]], variables: Mapping[int, Any]
) -> LayerGraph:
    """The operators that depend on the inputs.

    Args:
        pieces: The graph.
        specs: Shapes and types of its tensors.
        ends: Names of the inputs and of the outputs.
        variables: By the id of their handle.
    """
    results = [f"{operator_of(name)}:{_position(name)}" for name in ends[1]]
    order = in_order(pieces, results)
    constants = TensorflowConstants(pieces, order, ends[0], variables)
    dynamic = [item for item in order if item.name not in constants.operators and item.name not in ends[0]]
    read = [name for item in dynamic for name in data_inputs(item)]
    constants.read_small([name for name in read if name in constants], specs)
    used: dict[str, set[str]] = {}
    for name in [*read, *results]:
        used.setdefault(operator_of(name), set()).add(name)
    tensors = {name: _tensor(f"{name}:0", specs) for name in ends[0]}
    taken = {item.name for item in dynamic}
    nodes: list[Node] = []
    for item in dynamic:
        places = sorted(used[item.name], key=_position)
        for place in places:
            tensors[_named(place)] = _tensor(place, specs)
        operation = TensorflowOperation(item, tuple(data_inputs(item)), tuple(places), constants, specs)
        inputs = tuple("" if name in constants else _named(name) for name in operation.inputs)
        outputs = tuple(map(_named, places))
        nodes.extend(nodes_of((item.name, item.name), parts_of(operation), inputs, outputs, tensors, taken))
    missing = set(ends[1]) - set(tensors)
    if missing:
        raise ModelLoadError(f"the output {min(missing)} depends on no input.")
    return LayerGraph(*ends, tensors, tuple(nodes))


def _tensor(place: str, specs: Specs) -> Tensor:
    shape, dtype = specs[place]
    sizes = tuple(shape.as_list()) if shape.is_fully_defined() else None
    name = "object" if dtype == tf.string else dtype.name
    return Tensor(_named(place), sizes, name, observable=dtype not in _UNOBSERVABLE)

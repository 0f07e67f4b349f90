"""An ONNX file as it's observed and cut: functions inlined, constants lifted, types and sizes known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import onnx_ir
from onnx_ir.passes.common import LiftConstantsToInitializersPass, RemoveInitializersFromInputsPass

from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import load_error, loading
from conrepair.formats.onnx.load.border import Border
from conrepair.formats.onnx.passes.fold_constants import RANDOM
from conrepair.formats.onnx.passes.inline_functions import inline_functions
from conrepair.formats.onnx.passes.raise_opset import name_default_domain
from conrepair.formats.onnx.read.file import load_mapped
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.onnx_graphs.computing import GRAPHS, read_from_outside, subgraphs
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes


@dataclass(frozen=True)
class OnnxSource:
    """A loaded model.

    Attributes:
        path: Of the file.
        origin: The file that its external files lie beside; itself, but for a changed copy.
        model: Its values have the types and shapes that follow from the sizes of the inputs.
        layers: What the file calls nodes that come from a function: as it calls the node that called it.
        written: What the file has in place of nodes that give a tensor instead of a map, by the tensor's name.
        keys: Of those maps.
    """

    path: Path
    origin: Path
    model: onnx_ir.Model
    layers: Mapping[onnx_ir.Node, str] = field(default_factory=dict)
    written: Mapping[str, onnx_ir.Node] = field(default_factory=dict)
    keys: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)

    @property
    def graph(self) -> onnx_ir.Graph:
        """The main graph."""
        return self.model.graph

    @cached_property
    def values(self) -> dict[str, onnx_ir.Value]:
        """What the main graph's nodes read and write, by name."""
        graph = self.graph
        given = [*graph.inputs, *graph.initializers.values()]
        named = [*given, *(value for node in graph for value in node.outputs)]
        return {value.name: value for value in named if value.name}

    @cached_property
    def variable(self) -> frozenset[onnx_ir.Value]:
        """Values that depend on an input, are drawn or outputs; of graphs in attributes, all but what's stored."""
        found = set(self.graph.inputs)
        for node in self.graph:
            is_output = any(value.is_graph_output() for value in node.outputs)
            if is_output or is_random(node) or not found.isdisjoint(operands(node)):
                found.update(node.outputs)
            for graph in subgraphs(node):
                for inner in (graph, *graph.subgraphs()):
                    found.update(inner.inputs, *(item.outputs for item in inner))
        return frozenset(found)


def open_source(model: Model, inputs: Sequence[TensorSpec]) -> OnnxSource:
    """Load a file, whose weights are mapped, not read: those that it keeps outside, and those inside.

    Args:
        model: The file.
        inputs: The model's, with sizes that are all numbers.

    Raises:
        ModelLoadError: if it can't be read.
        ConversionError: if its own functions can't be inlined.
    """
    with loading(model, "an ONNX model"):
        loaded, border = load_mapped(Path(model.path), model.origin.parent)
    if not loaded.graph.outputs:
        raise load_error(model, "an ONNX model", ValueError("it has no outputs"))
    name_default_domain(loaded)
    layers = _inline(loaded)
    RemoveInitializersFromInputsPass()(loaded)
    LiftConstantsToInitializersPass(lift_all_constants=False, size_limit=0)(loaded)
    _give_away_stored(loaded.graph)
    _hold_weights(loaded)
    _fix_sizes(loaded, inputs)
    infer_shapes(loaded)
    return OnnxSource(Path(model.path), model.origin, loaded, layers, written_nodes(border), border.keys)


def written_nodes(border: Border) -> dict[str, onnx_ir.Node]:
    """What a file has in place of nodes that give tensors: in no graph, with the names of their results."""
    found = {}
    for name, proto in border.nodes.items():
        attributes = [onnx_ir.from_proto(attribute) for attribute in proto.attribute]
        node = onnx_ir.Node(proto.domain, proto.op_type, [None], attributes, num_outputs=1, name=proto.name)
        node.outputs[0].name = name
        found[name] = node
    return found


def operands(node: onnx_ir.Node) -> list[onnx_ir.Value]:
    """What a node reads: its inputs, then what graphs in its attributes read from outside."""
    read = [value for value in node.inputs if value is not None]
    inner = GRAPHS.intersection(item.type for item in node.attributes.values())
    return list(dict.fromkeys([*read, *(read_from_outside(node) if inner else ())]))


def _give_away_stored(graph: onnx_ir.Graph) -> None:
    """Let a node compute what is stored and an output, too, as it does all other outputs."""
    for place, value in enumerate(graph.outputs):
        name = str(value.name)
        if graph.initializers.get(name) is not value:
            continue
        del graph.initializers[name]
        value.name = f"{name}/stored"
        graph.register_initializer(value)
        node = onnx_ir.node("Identity", [value])
        node.outputs[0].name, node.outputs[0].type, node.outputs[0].shape = name, value.type, value.shape
        graph.append(node)
        graph.outputs[place] = node.outputs[0]


def _inline(model: onnx_ir.Model) -> dict[onnx_ir.Node, str]:
    """Inline the model's functions in place; by node that comes from one, the name of the call."""
    calls = [node for node in model.graph if node.op_identifier() in model.functions]
    if not calls:
        return {}
    names = [node.name or str(node.outputs[0].name) for node in calls]
    results = [{value.name for value in node.outputs} for node in calls]
    before = set(model.graph)
    inline_functions(model)
    layers, current = {}, 0
    for node in model.graph:
        if node not in before:
            # The nodes of one call follow one another, up to those that compute its results.
            layers[node] = names[current]
            results[current] -= {value.name for value in node.outputs}
            current = min(current + (not results[current]), len(calls) - 1)
    return layers


def is_random(node: onnx_ir.Node) -> bool:
    """Whether a node, or one in its graphs, draws numbers."""
    return node.op_type in RANDOM or any(
        inner.op_type in RANDOM for graph in subgraphs(node) for inner in graph.all_nodes()
    )


def _hold_weights(model: onnx_ir.Model) -> None:
    """Take what's left of numbers out of the file's message in place: that gives a copy at each reading."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if isinstance(tensor, onnx_ir.serde.TensorProtoTensor) and tensor.dtype != onnx_ir.DataType.STRING:
                value.const_value = onnx_ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=tensor.name)


def _fix_sizes(model: onnx_ir.Model, inputs: Sequence[TensorSpec]) -> None:
    """Write the inputs' sizes into the graph in place, and forget what the file says about values behind them.

    Files often record sizes of another batch. What only the file knows, about operators that aren't ONNX's, is
    asked of ONNX Runtime.
    """
    sizes = {spec.name: spec.shape for spec in inputs}
    for value in model.graph.inputs:
        if value.name in sizes:
            value.shape = onnx_ir.Shape(list(sizes[value.name]))
    for node in model.graph:
        for value in node.outputs:
            value.shape = None

"""ONNX models as networks: named as in the file, cut into ONNX Runtime sessions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir

from conrepair.formats.models.model import Model
from conrepair.formats.networks.network import Network, Piece
from conrepair.formats.onnx.passes.explicit_pads import explicit_pads
from conrepair.formats.onnx.read import blocks as onnx_blocks
from conrepair.formats.onnx.read import elementwise as onnx_elementwise
from conrepair.formats.onnx.read import integers as onnx_integers
from conrepair.formats.onnx.read import normalizations as onnx_normalizations
from conrepair.formats.onnx.read import products as onnx_products
from conrepair.formats.onnx.read import quantization as onnx_quantization
from conrepair.formats.onnx.read import recurrent as onnx_recurrent
from conrepair.formats.onnx.read import shapes as onnx_shapes
from conrepair.formats.onnx.read import windows as onnx_windows
from conrepair.formats.onnx.read.call import OnnxCall, OnnxOrigin
from conrepair.formats.onnx.read.constants import OnnxConstants
from conrepair.formats.onnx.read.cut import cut, is_plain
from conrepair.formats.onnx.read.plain import complete_types, dtype_name
from conrepair.formats.onnx.read.quantization import quantizations
from conrepair.formats.onnx.read.session import OnnxSegment, Sessions
from conrepair.formats.onnx.read.sizes import follow_sizes
from conrepair.formats.onnx.read.source import OnnxSource, open_source
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node, Parameter, Tensor
from conrepair.ground.graph.operators import OPERATORS
from conrepair.ground.onnx_graphs.computing import graphs_of
from conrepair.ground.onnx_graphs.infer_shapes import static_shape
from conrepair.ground.runtime.errors import InferenceError, ModelLoadError
from conrepair.ground.runtime.words import free_name

# Which rule writes each operator in the vocabulary.

_RULES: Mapping[str, Callable[[OnnxCall], None]] = {
    **onnx_blocks.RULES,
    **onnx_elementwise.RULES,
    **onnx_integers.RULES,
    **onnx_normalizations.RULES,
    **onnx_products.RULES,
    **onnx_quantization.RULES,
    **onnx_recurrent.RULES,
    **onnx_shapes.RULES,
    **onnx_windows.RULES,
}

# Operators whose first input may be constant when they aren't: the vocabulary has a parameter for it.
_EITHER = {
    *(name for name, item in OPERATORS.items() if "operand" in item.parameters),
    *("CastLike", "Gather", "Gemm", "MatMul", "Sum", "Where"),
    *("GatherBlockQuantized", "QLinearAdd", "QLinearConcat", "QLinearMatMul", "QLinearMul"),
}


def _describe(call: OnnxCall) -> None:
    """Let a node's rule add what it is in the vocabulary; without one, or if that adds nothing, it stays as it is."""
    rule = _RULES.get(call.native)
    if rule is not None and (call.operator in _EITHER or not call.is_constant(0)):
        rule(call)
    if not call.nodes:
        call.emit_native()


# Constants that graphs in an ONNX node's attributes use: they are parameters of the node, as a loop's weights.


def _inner_parameters(
    node: onnx_ir.Node, constants: OnnxConstants, opsets: Mapping[str, int], behind: str = ""
) -> Iterator[tuple[str, Parameter]]:
    """What nodes in a node's graphs bring along, by what it is there."""
    for name, graph in graphs_of(node):
        for place, inner in enumerate(graph):
            where = f" of {inner.op_type} {place} in the {name.replace('_', ' ')}{behind}"
            for role, parameter in _own(inner, constants, opsets).items():
                yield role + where, parameter
            yield from _inner_parameters(inner, constants, opsets, where)


def _own(node: onnx_ir.Node, constants: OnnxConstants, opsets: Mapping[str, int]) -> dict[str, Parameter]:
    call = OnnxCall(
        node, str(node.name), str(node.name), opsets.get(node.domain, 1), constants, dict(node.attributes)
    )
    if node.op_type == "DequantizeLinear" and call.is_constant(0):
        real = call.dequantized(0, (1,), 2, axis=int(call.attribute("axis", 1)))
        return {} if real is None else {"x": real}
    _describe(call)
    return {role: parameter for part in call.nodes for role, parameter in part.parameters.items()}


class OnnxNetwork(Network):
    """A graph as it's written, or with ONNX Runtime's optimizations of each piece.

    Attributes:
        origins: What each node of the graph was read from, by its name.
    """

    def __init__(
        self,
        graph: LayerGraph,
        source: OnnxSource,
        sessions: Sessions,
        origins: Mapping[str, OnnxOrigin],
        change: Callable[[Array], Array] | None = None,
    ) -> None:
        self.graph = graph
        self.origins = origins
        self.input_names = {name: name for name in graph.inputs}
        self.output_names = {name: name for name in graph.outputs}
        self.keys = source.keys
        self.producer = source.model.producer_name or ""
        self._source = source
        self._sessions, self._change = sessions, change

    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> OnnxSegment:
        """See the base class."""
        wanted = tuple(dict.fromkeys(wanted))
        self.check_cuts(fed, wanted)
        return OnnxSegment(cut(self._source, fed, wanted, self._change), self.graph.tensors, self._sessions)

    def second_opinion(self) -> OnnxNetwork:
        """With ONNX Runtime's optimizations of each piece."""
        return OnnxNetwork(self.graph, self._source, replace(self._sessions, optimized=True), self.origins)

    def with_weights(self, change: Callable[[Array], Array]) -> OnnxNetwork:
        """See the base class."""
        return OnnxNetwork(self.graph, self._source, self._sessions, self.origins, change)

    def as_onnx(self, fed: Collection[str], wanted: Sequence[str]) -> Piece | None:
        """See the base class; None of what quantizes."""
        if any(self.graph.tensors[name].quantization is not None for name in (*fed, *wanted)):
            return None
        piece = cut(self._source, fed, wanted, np.asarray)
        return Piece(piece.whole, piece.feeds)

    @property
    def values(self) -> Mapping[str, onnx_ir.Value]:
        """What the nodes read and write, by name; with the types and shapes that follow from the inputs' sizes."""
        return self._source.values


def open_network(model: Model, inputs: Sequence[TensorSpec]) -> OnnxNetwork:
    """Open a model; every node is computed by itself, as written.

    Args:
        model: An ONNX file; of more than 2 GB too.
        inputs: The model's, all sizes numbers.

    Raises:
        ModelLoadError: if it can't be read, or ONNX Runtime can't tell what its operators give.
        ConversionError: if its own functions can't be inlined.
    """
    source = open_source(model, inputs)
    tensors = (value.const_value for graph in source.model.graphs() for value in graph.initializers.values())
    numbers = (tensor for tensor in tensors if tensor is not None and tensor.dtype != onnx_ir.DataType.STRING)
    size = sum(tensor.nbytes for tensor in numbers)
    plain = Sessions(source.origin.parent, size)
    try:
        sizes = follow_sizes(source)
        if complete_types(source, plain):
            sizes = follow_sizes(source)  # what's behind those operators can be inferred now
        graph, origins = _graph(source, OnnxConstants(source, plain, sizes))
    except InferenceError as error:
        raise ModelLoadError(f"{model.path} can't be described: {error}") from error
    return OnnxNetwork(graph, source, plain, origins)


def _graph(source: OnnxSource, constants: OnnxConstants) -> tuple[LayerGraph, dict[str, OnnxOrigin]]:
    quantized = quantizations(source, constants)
    tensors = {}
    for value in _values(source):
        name, shape = str(value.name), static_shape(value)
        observable = is_plain(value.dtype) or value.dtype == onnx_ir.DataType.STRING
        tensors[name] = Tensor(
            name,
            None if shape is None else tuple(shape),
            dtype_name(value),
            quantized.get(name, (None,))[0],
            observable and isinstance(value.type, onnx_ir.TensorType) and value in source.variable,
            quantized.get(name, ())[1:],
        )
    nodes: list[Node] = []
    origins: dict[str, OnnxOrigin] = {}
    for call in _calls(source, constants):
        _describe(call)
        call.add_own_attributes()
        call.add_parameters(dict(_inner_parameters(call.node, constants, source.model.opset_imports)))
        nodes.extend(call.nodes)
        tensors.update((tensor.name, tensor) for tensor in call.hidden)
        origins.update(call.origins())
    graph = LayerGraph(
        inputs=tuple(str(value.name) for value in source.graph.inputs),
        outputs=tuple(str(value.name) for value in source.graph.outputs),
        tensors=tensors,
        nodes=tuple(nodes),
    )
    return graph, origins


def _values(source: OnnxSource) -> Iterator[onnx_ir.Value]:
    """Inputs, what depends on them, and results that are constant."""
    yield from source.graph.inputs
    for node in source.graph:
        yield from (value for value in node.outputs if value.name and value in source.variable)
    yield from (value for value in source.graph.outputs if value not in source.variable)


def _calls(source: OnnxSource, constants: OnnxConstants) -> Iterator[OnnxCall]:
    """The nodes that depend on inputs, their padding in numbers; each with a name of its own."""
    described = source.model.clone()
    explicit_pads(described)
    taken: set[str] = set()
    for node, explicit in zip(source.graph, described.graph, strict=True):
        if source.variable.isdisjoint(node.outputs):
            continue
        first = next((value.name for value in node.outputs if value.name), None) or node.op_type
        layer, written = source.layers.get(node), source.written.get(str(node.outputs[0].name))
        given = f"{layer}/{node.name or node.op_type}" if layer else node.name
        wished = next((item for item in (given, first) if item and item not in taken), given or first)
        name = free_name(wished, taken, ":")
        taken.add(name)
        opset = source.model.opset_imports.get((written or node).domain, 1)
        attributes = dict((written or explicit).attributes)
        yield OnnxCall(node, name, layer or node.name or name, opset, constants, attributes, written)

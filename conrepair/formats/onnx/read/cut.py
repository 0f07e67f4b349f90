"""A piece of an ONNX graph as a model of its own, whose weights stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir
from onnx_ir.serde import serialize_node, serialize_shape_into, serialize_type_into

from conrepair.formats.onnx.load.proto_file import rename_read
from conrepair.formats.onnx.read.file import unheld
from conrepair.formats.onnx.read.source import OnnxSource, operands
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.words import free_name

_SMALL = 1024  # bytes; some kernels want their axes and shapes inside the model
_NOWHERE = 1 << 40  # bytes; where no file has anything, so that reading it fails rather than giving other numbers


@dataclass(frozen=True)
class OnnxCut:
    """A model of a piece.

    Attributes:
        proto: With weights in the original's external file, or missing: those are given to the session.
        given: The missing ones by name.
        feeds: What the piece's inputs are called, by the tensor that is fed.
        wanted: The outputs.
    """

    proto: onnx.ModelProto
    given: Mapping[str, onnx_ir.TensorProtocol] = field(default_factory=dict)
    feeds: Mapping[str, str] = field(default_factory=dict)
    wanted: tuple[str, ...] = ()

    @property
    def whole(self) -> onnx.ModelProto:
        """The model with the weights inside that would be given to a session."""
        model = onnx.ModelProto()
        model.CopyFrom(self.proto)
        for item in model.graph.initializer:
            if item.name in self.given:
                item.CopyFrom(onnx.numpy_helper.from_array(self.given[item.name].numpy(), item.name))
        return model


def cut(
    source: OnnxSource, fed: Collection[str], wanted: Sequence[str], change: Callable[[Array], Array] | None = None
) -> OnnxCut:
    """Take the nodes that compute some tensors out of a graph.

    Args:
        source: Where from.
        fed: Tensors that are known.
        wanted: Tensors that are computed, those that are known too.
        change: Gives other numbers for each weight of real ones.

    Raises:
        ValueError: if one depends on an input of the graph that isn't fed.
    """
    nodes, read = _needed(source, set(fed), wanted)
    computed = {value.name for node in nodes for value in node.outputs if value.name}
    taken = computed | source.values.keys()
    feeds = {}
    for name in (name for name in fed if name in read):
        feeds[name] = free_name(f"{name}/fed", taken, "") if name in computed else name
    renamed = {old: new for old, new in feeds.items() if old != new}
    weights = [value for name in read if name not in feeds and (value := source.graph.initializers.get(name))]
    graph = onnx.GraphProto(name="piece")
    graph.node.extend(map(_serialized, nodes))
    for node in graph.node if renamed else ():
        rename_read(node, renamed)
    graph.input.extend(_typed(source.values[old], new) for old, new in feeds.items())
    graph.output.extend(_typed(source.values[name], name) for name in wanted)
    given: dict[str, onnx_ir.TensorProtocol] = {}
    for value in weights:
        graph.initializer.append(_initializer(value, source, given, change))
    imports = [onnx.helper.make_opsetid(*item) for item in source.model.opset_imports.items()]
    proto = onnx.helper.make_model(graph, opset_imports=imports, ir_version=source.model.ir_version)
    return OnnxCut(proto, given, feeds, tuple(wanted))


def _needed(source: OnnxSource, fed: set[str], wanted: Sequence[str]) -> tuple[list[onnx_ir.Node], dict[str, None]]:
    """The nodes that compute what is wanted, in order, and the names that they read."""
    needed = set(wanted)
    nodes: list[onnx_ir.Node] = []
    read: dict[str, None] = {}
    for node in reversed(source.graph):
        if any(value.name in needed for value in node.outputs if value.name):
            nodes.append(node)
            names = [str(value.name) for value in operands(node)]
            read.update(dict.fromkeys(names))
            needed.update(name for name in names if name not in fed)
    missing = [value.name for value in source.graph.inputs if value.name in needed]
    if missing:
        raise ValueError(f"{', '.join(map(str, wanted))} can't be computed without the inputs {missing}")
    return nodes[::-1], read


def _serialized(node: onnx_ir.Node) -> onnx.NodeProto:
    """A node whose branches don't say shapes: those of one that isn't taken may not fit together."""
    found = serialize_node(node)
    for graph in _branches(found):
        del graph.value_info[:]
        for value in graph.output:
            value.type.tensor_type.ClearField("shape")
    return found


def _branches(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Of a choice, and of those in it; the bodies of loops need their shapes."""
    for attribute in node.attribute if node.op_type == "If" else ():
        yield attribute.g
        for inner in attribute.g.node:
            yield from _branches(inner)


def _typed(value: onnx_ir.Value, name: str) -> onnx.ValueInfoProto:
    """A value with its type and rank; sizes are free, but for lists of sizes: operators ask how many they are."""
    info = onnx.ValueInfoProto(name=name)
    if value.type is not None:
        serialize_type_into(info.type, value.type)
        if value.shape is not None and isinstance(value.type, onnx_ir.TensorType):
            whole = value.dtype in {onnx_ir.DataType.INT32, onnx_ir.DataType.INT64} and len(value.shape) == 1
            serialize_shape_into(info.type, value.shape if whole else onnx_ir.Shape([None] * len(value.shape)))
    return info


def _initializer(
    value: onnx_ir.Value,
    source: OnnxSource,
    given: dict[str, onnx_ir.TensorProtocol],
    change: Callable[[Array], Array] | None,
) -> onnx.TensorProto:
    """A weight without its numbers, unless they are few or of a type that numpy doesn't have."""
    tensor, name = value.const_value, str(value.name)
    if tensor is None:
        raise ValueError(f"{name} has no value")
    if change is not None and tensor.dtype.is_floating_point() and is_plain(tensor.dtype):
        tensor = onnx_ir.tensor(change(unheld(tensor).numpy()), tensor.dtype, name)
    outside = isinstance(tensor, onnx_ir.ExternalTensor)
    if tensor.nbytes <= _SMALL or not (outside or is_plain(tensor.dtype)):
        proto = onnx_ir.serde.serialize_tensor(_inside(tensor))
        proto.name = name
        return proto
    proto = onnx.TensorProto(name=name, data_type=int(tensor.dtype), dims=tensor.shape.numpy())
    proto.data_location = onnx.TensorProto.EXTERNAL
    location, offset = source.origin.name, _NOWHERE
    if isinstance(tensor, onnx_ir.ExternalTensor):
        location, offset = str(tensor.location), tensor.offset or 0
    else:
        given[name] = tensor
    for key, item in (("location", location), ("offset", offset), ("length", tensor.nbytes)):
        proto.external_data.add(key=key, value=str(item))
    return proto


def _inside(tensor: onnx_ir.TensorProtocol) -> onnx_ir.TensorProtocol:
    if isinstance(tensor, onnx_ir.ExternalTensor):
        return onnx_ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=tensor.name)
    return tensor


_PLAIN = {
    onnx_ir.DataType[name]
    for name in (
        *("FLOAT", "DOUBLE", "FLOAT16", "BOOL", "INT8", "UINT8", "INT16", "UINT16"),
        *("INT32", "UINT32", "INT64", "UINT64"),
    )
}


def is_plain(kind: onnx_ir.DataType | None) -> bool:
    """Whether both numpy and ONNX Runtime's Python side have an element type."""
    return kind in _PLAIN

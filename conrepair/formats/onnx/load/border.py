"""Let an ONNX graph take and give tensors of types that numpy has, where it has maps, sequences or narrow types.

Classifiers of scikit-learn, LightGBM and XGBoost give a map from class to probability for each sample (ZipMap): as
a tensor that's [samples, classes], the classes in their order. A sequence is a tensor for each place where the graph
says which places there are; else all its rows in one tensor, and how large each place's tensor is in another.
What's of 4 bits, of 8 that are a float, or bfloat16 is cast to a wider type there, which loses nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from conrepair.formats.onnx.load.proto_file import fed_to, inner_graphs, opset_of

_WIDER = {
    **dict.fromkeys(
        ("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1"),
        onnx.TensorProto.FLOAT,
    ),
    "INT4": onnx.TensorProto.INT8,
    "UINT4": onnx.TensorProto.UINT8,
}
_OPSET = 17  # for models that import no operators of ONNX's own
_SIZES_AS_INPUT = 13  # opset from which on Split has them there
_LABELS = ("classlabels_strings", "classlabels_int64s")
_VOCABULARY = ("string_vocabulary", "int64_vocabulary")


@dataclass(frozen=True)
class Border:
    """What a graph's inputs and outputs were.

    Attributes:
        keys: Of the maps that outputs were, in their order, by the output's name.
        nodes: What the file has in place of the node that now gives a tensor, by the tensor's name.
        values: Inputs and outputs of other types, by their names.
        narrow: Numpy's names of the types that were cast, by the names of inputs and outputs.
    """

    keys: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    nodes: Mapping[str, onnx.NodeProto] = field(default_factory=dict)
    values: Mapping[str, onnx.ValueInfoProto] = field(default_factory=dict)
    narrow: Mapping[str, str] = field(default_factory=dict)


def is_plain_border(proto: onnx.ModelProto) -> bool:
    """Whether all inputs and outputs are tensors of types that numpy has."""
    values = (*proto.graph.input, *proto.graph.output)
    return all(_is_tensor(value) and not _narrow(value) for value in values)


def plain_border(proto: onnx.ModelProto, *, whole: bool = True) -> Border:
    """Rewrite inputs and outputs in place; what nothing can be put in place of stays as it is.

    Args:
        proto: The model.
        whole: Whether sequences and narrow types are rewritten, too, which `written_border` doesn't put back.
    """
    if is_plain_border(proto):
        return Border()
    opset = opset_of(proto)
    if opset is None:
        opset = _OPSET
        proto.opset_import.append(onnx.helper.make_opsetid("", opset))
    rewriting = _Rewriting(proto.graph, opset)
    rewriting.inputs()
    rewriting.outputs(sequences=whole)
    narrow = rewriting.cast() if whole else {}
    for place in reversed(range(len(proto.graph.value_info))):
        if _is_map(proto.graph.value_info[place].type):
            del proto.graph.value_info[place]
    return Border(rewriting.keys, rewriting.nodes, rewriting.values, narrow)


def written_border(proto: onnx.ModelProto, border: Border) -> None:
    """Put map outputs back into the model.

    Args:
        proto: What `plain_border` was given, changed since.
        border: What that returned; its nodes may be others by now.
    """
    graph = proto.graph
    added: set[str] = set()
    for node in graph.node:
        name = next(iter(node.output), "")
        if name in border.nodes:
            read = list(node.input)
            added.update(read[1:])
            node.CopyFrom(border.nodes[name])
            node.input[:], node.output[:] = read[:1], [name]
    for place in reversed(range(len(graph.initializer))):
        if graph.initializer[place].name in added:
            del graph.initializer[place]
    for value in (*graph.input, *graph.output):
        if value.name in border.values:
            value.CopyFrom(border.values[value.name])


def _is_tensor(value: onnx.ValueInfoProto) -> bool:
    return value.type.WhichOneof("value") in {"tensor_type", "sparse_tensor_type", None}


def _narrow(value: onnx.ValueInfoProto) -> str:
    """The element type, where numpy has none of it; else ""."""
    name = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)
    return name if name in _WIDER else ""


def _is_map(kind: onnx.TypeProto) -> bool:
    """Whether a type is a map, or a sequence of such."""
    return kind.HasField("map_type") or (kind.HasField("sequence_type") and _is_map(kind.sequence_type.elem_type))


def _typed(name: str, kind: onnx.TypeProto) -> onnx.ValueInfoProto:
    value = onnx.ValueInfoProto(name=name)
    value.type.CopyFrom(kind)
    return value


def _listed(node: onnx.NodeProto, names: Collection[str]) -> tuple[int | str, ...]:
    """A list that one of two attributes holds, of texts or of whole numbers."""
    values = [onnx.helper.get_attribute_value(item) for item in node.attribute if item.name in names]
    return tuple(item.decode() if isinstance(item, bytes) else int(item) for item in next(iter(values), ()))


def _rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Call a value otherwise wherever it's held, and nodes read or give it, in place."""
    for held in graph.initializer:
        held.name = new if held.name == old else held.name
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [new if name == old else name for name in names]
        for inner in inner_graphs(node):
            _rename(inner, old, new)
            for value in inner.output:
                value.name = new if value.name == old else value.name


def _unread(graph: onnx.GraphProto) -> set[str]:
    """Names of results that nobody reads, those included that only such nodes read."""
    read = {value.name for value in graph.output}
    unread: set[str] = set()
    for node in reversed(graph.node):
        if read.isdisjoint(node.output):
            unread.update(node.output)
        else:
            read.update(_reads(node))
    return unread


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads, and the graphs in its attributes."""
    yield from node.input
    for graph in inner_graphs(node):
        yield from (value.name for value in graph.output)
        for inner in graph.node:
            yield from _reads(inner)


class _Rewriting:
    """A graph whose inputs and outputs become tensors.

    Attributes:
        keys, nodes, values: As `Border` has them.
    """

    def __init__(self, graph: onnx.GraphProto, opset: int) -> None:
        self.keys: dict[str, tuple[int | str, ...]] = {}
        self.nodes: dict[str, onnx.NodeProto] = {}
        self.values: dict[str, onnx.ValueInfoProto] = {}
        self._graph, self._opset = graph, opset
        self._made = {name: node for node in graph.node for name in node.output}
        self._unread = _unread(graph)

    def inputs(self) -> None:
        """An input that's a map becomes the row of numbers that its only readers make of it."""
        for value in [item for item in self._graph.input if not _is_tensor(item)]:
            readers = [node for node in self._graph.node if value.name in node.input]
            vocabularies = {_listed(node, _VOCABULARY) for node in readers}
            if {node.op_type for node in readers} != {"DictVectorizer"} or len(vocabularies) > 1:
                continue
            self._keep(value)
            [vocabulary] = vocabularies
            keys = sorted(vocabulary)
            self.keys[value.name] = tuple(keys)
            kind = self.values[value.name].type.map_type.value_type.tensor_type.elem_type
            value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, kind, [1, len(vocabulary)]))
            for node in readers:
                written = onnx.NodeProto()
                written.CopyFrom(node)
                self.nodes[node.output[0]] = written
                node.CopyFrom(self._moved(written, value.name, [keys.index(key) for key in vocabulary]))

    def outputs(self, *, sequences: bool) -> None:
        """Maps become their values in the keys' order, sequences the tensors that they're made of."""
        outputs = list(self._graph.output)
        del self._graph.output[:]
        for value in outputs:
            made = self._origin(value.name)
            if _is_tensor(value) or made is None:
                self._graph.output.append(value)
            elif made.op_type == "ZipMap":
                self._columns(value, made)
            elif sequences and value.type.HasField("sequence_type") and not _is_map(value.type):
                self._graph.output.extend(self._places(value, made))
            else:
                self._graph.output.append(value)
        self._drop_unread()

    def cast(self) -> dict[str, str]:
        """Narrow types become wider ones, under the same names; numpy's names of what they were."""
        found: dict[str, str] = {}
        ends = [(value, True) for value in fed_to(self._graph)]
        for value, fed in [*ends, *((value, False) for value in self._graph.output)]:
            name, kind = value.name, _narrow(value)
            if name in found:  # an input that is an output, too
                value.type.tensor_type.elem_type = _WIDER[kind]
            if not kind or name in found:
                continue
            found[name] = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type).name
            inside = f"{name}/narrow"
            _rename(self._graph, name, inside)
            if fed:
                made = onnx.helper.make_node("Cast", [name], [inside], to=value.type.tensor_type.elem_type)
                self._graph.node.insert(0, made)
            else:
                self._add("Cast", [inside], [name], to=_WIDER[kind])
            value.type.tensor_type.elem_type = _WIDER[kind]
        return found

    def _origin(self, name: str) -> onnx.NodeProto | None:
        """The node that makes a value, behind those that only copy it."""
        node = self._made.get(name)
        while node is not None and node.op_type == "Identity":
            node = self._made.get(node.input[0])
        return node

    def _columns(self, value: onnx.ValueInfoProto, made: onnx.NodeProto) -> None:
        labels = _listed(made, _LABELS)
        order = sorted(range(len(labels)), key=labels.__getitem__)
        written = onnx.NodeProto()
        written.CopyFrom(made)
        written.output[:] = [value.name]
        self._keep(value)
        self.nodes[value.name] = written
        self.keys[value.name] = tuple(labels[place] for place in order)
        self._made[value.name].CopyFrom(self._moved(written, made.input[0], order))
        shape = ["samples", len(labels)]
        self._graph.output.append(onnx.helper.make_tensor_value_info(value.name, onnx.TensorProto.FLOAT, shape))

    def _moved(self, written: onnx.NodeProto, read: str, order: list[int]) -> onnx.NodeProto:
        """What gives a row's values in some order, in place of a node of the file."""
        [name] = written.output
        if order == sorted(order):
            return onnx.helper.make_node("Identity", [read], [name], written.name)
        places = self._constant(f"{name}/order", order)
        return onnx.helper.make_node("Gather", [read, places], [name], written.name, axis=-1)

    def _places(self, value: onnx.ValueInfoProto, made: onnx.NodeProto) -> Iterator[onnx.ValueInfoProto]:
        """The outputs that a sequence becomes."""
        element = value.type.sequence_type.elem_type
        if made.op_type == "SequenceConstruct":
            names = [f"{value.name}[{place}]" for place in range(len(made.input))]
            for name, given in zip(names, made.input, strict=True):
                self._add("Identity", [given], [name])
            yield from (_typed(name, element) for name in names)
        elif made.op_type == "SplitToSequence" and (parts := self._parts(made)):
            names = [f"{value.name}[{place}]" for place in range(len(parts))]
            axis = next((item.i for item in made.attribute if item.name == "axis"), 0)
            if self._opset < _SIZES_AS_INPUT:
                self._add("Split", [made.input[0]], names, axis=axis, split=parts)
            else:
                self._add("Split", [made.input[0], self._constant(f"{value.name}/parts", parts)], names, axis=axis)
            yield from (_typed(name, element) for name in names)
        else:
            yield from self._rows(value, element)

    def _rows(self, value: onnx.ValueInfoProto, element: onnx.TypeProto) -> Iterator[onnx.ValueInfoProto]:
        """All rows of a sequence's tensors, one behind the other, and the sizes of each."""
        name, shape = value.name, element.tensor_type.shape
        scalars = element.tensor_type.HasField("shape") and not shape.dim
        self._add("ConcatFromSequence", [name], [f"{name}/rows"], axis=0, new_axis=int(scalars))
        inner = onnx.helper.make_graph(
            [
                onnx.helper.make_node("Identity", [f"{name}/before"], [f"{name}/behind"]),
                onnx.helper.make_node("SequenceAt", [name, f"{name}/place"], [f"{name}/item"]),
                onnx.helper.make_node("Shape", [f"{name}/item"], [f"{name}/size"]),
            ],
            "each",
            [
                onnx.helper.make_tensor_value_info(f"{name}/place", onnx.TensorProto.INT64, []),
                onnx.helper.make_tensor_value_info(f"{name}/before", onnx.TensorProto.BOOL, []),
            ],
            [
                onnx.helper.make_tensor_value_info(f"{name}/behind", onnx.TensorProto.BOOL, []),
                onnx.helper.make_tensor_value_info(f"{name}/size", onnx.TensorProto.INT64, [None]),
            ],
        )
        self._add("SequenceLength", [name], [f"{name}/length"])
        self._add("Loop", [f"{name}/length", ""], [f"{name}/sizes"], body=inner)
        rows = onnx.ValueInfoProto(name=f"{name}/rows")
        rows.type.tensor_type.elem_type = element.tensor_type.elem_type
        yield rows
        yield onnx.helper.make_tensor_value_info(f"{name}/sizes", onnx.TensorProto.INT64, [None, None])

    def _parts(self, made: onnx.NodeProto) -> list[int]:
        """How much of an axis each place gets, where the graph says it; [] elsewhere."""
        held = {tensor.name: tensor for tensor in self._graph.initializer}
        sizes = made.input[1] if len(made.input) > 1 else ""
        constant = self._made.get(sizes)
        if constant is not None and constant.op_type == "Constant" and constant.attribute[0].name == "value":
            held[sizes] = constant.attribute[0].t
        numbers = onnx.numpy_helper.to_array(held[sizes]) if sizes in held else np.zeros(())
        return [int(size) for size in numbers] if numbers.ndim else []

    def _keep(self, value: onnx.ValueInfoProto) -> None:
        kept = onnx.ValueInfoProto()
        kept.CopyFrom(value)
        self.values[value.name] = kept

    def _constant(self, name: str, numbers: list[int]) -> str:
        self._graph.initializer.append(onnx.numpy_helper.from_array(np.array(numbers, np.int64), name))
        return name

    def _add(self, operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        self._graph.node.append(onnx.helper.make_node(operator, inputs, outputs, **attributes))

    def _drop_unread(self) -> None:
        """Take out nodes whose results nobody reads any more."""
        unread = _unread(self._graph) - self._unread
        for place in reversed(range(len(self._graph.node))):
            if not unread.isdisjoint(self._graph.node[place].output):
                del self._graph.node[place]

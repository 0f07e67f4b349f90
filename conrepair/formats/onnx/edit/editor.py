"""ONNX: the main graph's nodes, attributes and constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_ir

from conrepair.formats.editing.editor import Editor
from conrepair.formats.editing.operation import Operation
from conrepair.formats.editing.resizing import SHAPED
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import ChangedModel, Model
from conrepair.formats.onnx.edit.attributes import WrittenNode, write_attributes
from conrepair.formats.onnx.edit.blocks import is_packed, requantize_packed
from conrepair.formats.onnx.edit.constants import set_constant, to_file
from conrepair.formats.onnx.edit.expand import expand, is_newer
from conrepair.formats.onnx.edit.file import OnnxFile, sizes_of, tensor_of
from conrepair.formats.onnx.edit.graft import OnnxWriter, graft
from conrepair.formats.onnx.edit.grids import requantize, set_range
from conrepair.formats.onnx.edit.integers import is_of_integers, requantize_own, set_own
from conrepair.formats.onnx.edit.rewire import exchange_outputs, exchange_readers, put_in_order, take_out
from conrepair.formats.onnx.edit.save import renew_types, save, save_beside, with_sizes
from conrepair.formats.onnx.edit.write import (
    become,
    bias_place,
    check_operands,
    check_required,
    set_input,
    write_input,
)
from conrepair.formats.onnx.passes.files import is_large
from conrepair.formats.onnx.read.file import load_plain, take_in
from conrepair.formats.onnx.read.network import OnnxNetwork, open_network
from conrepair.formats.onnx.read.plain import batch_numbers, written_shapes
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import Array, Attribute, Node, without_sizes
from conrepair.ground.graph.operators import COMMUTATIVE, OPERATORS
from conrepair.ground.onnx_graphs.infer_shapes import contradiction
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of


def _opened(model: Model) -> tuple[OnnxNetwork, list[TensorSpec]]:
    """The network with sizes for which it can be described: one sample, or as many as a shape in it has."""
    first = sizes_of(model)
    try:
        return open_network(model, first), first
    except ModelLoadError:
        for number in batch_numbers(written_shapes(model.path), {0}):
            others = sizes_of(model, number)
            with suppress(ModelLoadError):
                return open_network(model, others), others
        raise


class OnnxEditor(Editor):
    """Changes of the main graph; what's inside functions and inner graphs is seen, but not changed.

    An attribute that is already what it shall be stays as it's written. Sizes that the file leaves open are taken
    as declared; of the batch, as one.
    """

    def __init__(self, model: Model, known: tuple[OnnxNetwork, list[TensorSpec]] | None = None) -> None:
        super().__init__(model)
        network, self._sizes = self._known = known or _opened(model)
        self.graph = without_sizes(network.graph)
        self._origins = dict(network.origins)
        self._file = OnnxFile(Path(model.path), network.values)
        self._targets = {name: self._file.original(origin.node) for name, origin in self._origins.items()}
        self._said = {node.name: {**node.own, **node.written, **node.attributes} for node in self.graph.nodes}
        self._nodes: dict[str, Node] = {}  # that are other operators by now
        self._numbers: dict[tuple[str, str], Array] = {}
        self._instead: dict[str, onnx_ir.Value] = {}  # what stands for tensors by now
        self._reshaped = False

    def again(self) -> OnnxEditor:
        """See the base class; the network isn't read again."""
        return OnnxEditor(self._model, self._known)

    def _set_parameter(self, node: Node, role: str, array: Array) -> None:
        """Change a constant, which becomes the node's own; a quantized one keeps its scales."""
        before = node.parameters[role]
        known = self._numbers.get((node.name, role))
        if np.array_equal(before.numpy() if known is None else known, array, equal_nan=before.dtype != "object"):
            return
        target = self._target(node)
        index = self._origins[node.name].parameters.get(role)
        if index is None:
            self._set_tensor(node, target, role, array)
        else:
            with self._file.changing(target):
                if is_packed(target) and role == "weight":
                    requantize_packed(self._file, target, index, array)
                elif is_of_integers(target):
                    set_own(self._file, target, index, array)
                else:
                    stored = to_file(self._file, target, index, array)
                    held = None if (value := target.inputs[index]) is None else self._file.shape(value)
                    if array.shape != before.shape and list(stored.shape) != held:
                        self.refuse(
                            f"{node.name}: {role} is {before.shape}, not {array.shape}; give it in that shape."
                        )
                    set_constant(self._file, target, index, stored)
        self._numbers[node.name, role] = np.array(array)

    def _give_bias(self, node: Node, array: Array) -> None:
        """An input that may be left out."""
        target = self._single(node)
        index = bias_place(self._file, target)
        if index is None:
            self._refuse_bias(node)
        with self._file.changing(target):
            write_input(self._file, target, index, to_file(self._file, target, index, array))

    def requantize(self, node: Node, role: str, array: Array) -> None:
        """A constant of integers, which gets new scales wherever they're written; a bias in steps of them follows."""
        target = self._target(node)
        index = self._origins[node.name].parameters.get(role)
        if index is None or array.shape != node.parameters[role].shape:
            self.refuse(f"{node.name}: {role} isn't quantized, or isn't {array.shape}.")
        with self._file.changing(target):
            if is_packed(target):
                requantize_packed(self._file, target, index, array)
            elif is_of_integers(target):
                requantize_own(self._file, target, index, array)
            else:
                requantize(self._file, target, index, to_file(self._file, target, index, array))
        self._numbers[node.name, role] = np.array(array)

    def set_range(self, tensor: str, low: float, high: float) -> None:
        """Scale and zero point wherever nodes read them."""
        with self._file.changing():
            set_range(self._file, self._value(tensor), low, high)

    def set_attributes(self, node: Node, changes: Mapping[str, Attribute]) -> None:
        """Change attributes, or the constant inputs that hold them."""
        said = self._said[node.name]
        changes = {name: value for name, value in changes.items() if name not in said or said[name] != value}
        if not changes:
            return
        target = self._target(node)
        with self._file.changing(target):
            write_attributes(self._place(node, target), changes)
        said |= changes
        self._follow(node)
        self._reshaped = True

    def set_operator(self, node: Node, operator: str, attributes: Mapping[str, Attribute]) -> None:
        """Another operator; attributes that both have stay, and so do parameters."""
        target = self._single(node)
        if operator not in OPERATORS:
            self.refuse(f"{node.name} as {operator}: that's no operator of the vocabulary. Name one that is.")
        known = OPERATORS[operator]
        kept = {name: value for name, value in self._said[node.name].items() if name in known.attributes}
        if operator in COMMUTATIVE:
            kept.pop("constant_first", None)
        said = {**known.attributes, **kept, **attributes}
        origin = self._origins[node.name]
        operands = {*origin.inputs, *(place for role, place in origin.parameters.items() if role in known.parameters)}
        given = {name: item for name, item in said.items() if item is not None}
        changed = replace(node, op=operator, attributes=said)
        with self._file.changing(target):
            for index in sorted(set(range(len(target.inputs))) - operands, reverse=True):
                set_input(self._file, target, index, None)  # what said an attribute, or a role it hasn't
            if is_newer(self._file, operator):
                self._file.graph.insert_before(target, expand(self._file, target, operator, given))
            else:
                become(self._file, target, operator)
                check_operands(self._file, target)
                write_attributes(replace(self._place(node, target), node=changed, said={}), given)
                check_required(self._file, target)
            target.resize_outputs(1)
        self._nodes[node.name], self._said[node.name] = changed, said
        self._follow(node)
        self._reshaped = True

    def remove(self, node: Node, index: int = 0) -> None:
        """Readers take the input; the name of an output stays, with an Identity."""
        target = self._single(node)
        with self._file.changing():
            position = self._position(node, index)
            source = target.inputs[position]
            take_out(self._file, target, position)
        if target.graph is None and source is not None:
            self._instead[node.outputs[0]] = source
        self._reshaped = True

    def graft(self, tensor: str, operations: Sequence[Operation], label: str, readers: Sequence[Node] = ()) -> None:
        """New nodes behind the tensor's own; an output's name goes to the last of them."""
        targets = [self._target(reader) for reader in readers]
        with self._file.changing():
            result = graft(self._file, self._value(tensor), operations, label, self._value, targets)
        if not readers:
            self._instead[tensor] = result
        self._reshaped = True

    def swap_inputs(self, node: Node, one: int, two: int) -> None:
        """By their places: a node may read one tensor twice, or read something else in its place by now."""
        target = self._single(node)
        first, second = self._position(node, one), self._position(node, two)
        before, behind = target.inputs[first], target.inputs[second]
        target.replace_input_with(first, behind)
        target.replace_input_with(second, before)
        self._reshaped = True

    def exchange_reads(self, one: str, two: str, readers: Sequence[Node]) -> None:
        """Nodes stay where they are, unless one would read what comes later."""
        exchange_readers(self._value(one), self._value(two), [self._target(reader) for reader in readers])
        put_in_order(self._file)
        self._reshaped = True

    def add_output(self, tensor: str, operations: Sequence[Operation] = (), place: int | None = None) -> None:
        """Declared with what is known of its type."""
        if operations:
            writer = OnnxWriter(self._file, tensor)
            value = writer.compute(operations, self._value)
            value.name = self._file.free(tensor)
            self._file.graph.extend(writer.nodes)
        else:
            value = self._value(tensor)
        outputs = self._file.graph.outputs
        outputs.insert(len(outputs) if place is None else place, value)
        self._reshaped = True

    def drop_output(self, place: int) -> None:
        """Out of the graph's outputs."""
        with self._file.changing():
            self._file.forget(self._file.graph.outputs.pop(self._output_now(place)))
        self._left_out.add(place)
        self._reshaped = True

    def exchange_outputs(self, one: int, two: int) -> None:
        """Exchange what the names stand for."""
        exchange_outputs(self._file, self._output_now(one), self._output_now(two))
        self._reshaped = True

    def move_outputs(self, one: int, two: int) -> None:
        """In the list of the graph's outputs."""
        first, second = self._output_now(one), self._output_now(two)
        outputs = list(self._file.graph.outputs)
        outputs[first], outputs[second] = outputs[second], outputs[first]
        self._file.graph.outputs[:] = outputs

    def exchange_inputs(self, one: int, two: int) -> None:
        """Exchange the readers of two tensors."""
        first, second = (self._file.values[self.graph.inputs[place]] for place in (one, two))
        exchange_readers(first, second)
        self._reshaped = True

    def _set_shape(self, node: Node, shape: tuple[int, ...]) -> None:
        """Set the shape of a node that has one as an attribute; other nodes follow the tensors that they read."""
        if node.native in SHAPED:
            self.set_attributes(node, {"shape": shape})

    def _declare_inputs(self, shapes: Mapping[str, Sequence[int | None]]) -> None:
        """Types of values behind the inputs are inferred anew."""
        for name, shape in shapes.items():
            value = self._file.values[name]
            if value.shape is not None:
                value.shape = onnx_ir.Shape(
                    size if new is None else new for size, new in zip(value.shape, shape, strict=True)
                )
        declared = {str(value.name): value.shape for value in self._file.graph.inputs}
        self._sizes = [
            replace(
                spec,
                shape=tuple(
                    size if isinstance(size, int) else known
                    for size, known in zip(declared[spec.name] or (), spec.shape, strict=True)
                ),
            )
            for spec in self._sizes
        ]
        self._reshaped = True

    def save(self, folder: Path, stem: str) -> Model:
        """A .onnx file, with `<name>.data` beside it where weights were outside before."""
        before, path = Path(self._model.path), folder / f"{stem}.onnx"
        self._renew()
        take_in(self._file.model, before)
        save(self._file.model, path, before, self._file.border, external=self._file.external)
        return Model("onnx", str(path), model_sha256(path), inputs=self._model.inputs)

    def save_changes(self, folder: Path, stem: str) -> Model:
        """A .onnx file whose weights are where they were, but for those that were changed."""
        before, path = Path(self._model.path), folder / f"{stem}.onnx"
        if before.is_symlink() or is_large(self._file.model, without_external=True):  # ONNX Runtime follows no link
            return self.save(folder, stem)
        self._renew()
        save_beside(self._file.model, path, before, self._file.border)
        return ChangedModel("onnx", str(path), sha256_of(path), inputs=self._model.inputs, of=str(before))

    def _renew(self) -> None:
        if self._reshaped:
            renew_types(self._file.model)
            self._check_sizes()

    # --- where things are -------------------------------------------------------------------------------------

    def _target(self, node: Node) -> onnx_ir.Node:
        """The file's node."""
        target = self._targets[node.name]
        if target is None or (target.graph is None and target not in self._file.written.values()):
            gone = "an earlier change took it out" if target is not None else "it's inside a function of the file"
            self.refuse(f"{node.name} can't be changed: {gone}.")
        return target

    def _value(self, tensor: str) -> onnx_ir.Value:
        """What stands for a tensor by now."""
        value = self._instead.get(tensor, self._file.values.get(tensor))
        if value is None:
            self.refuse(f"{tensor} is inside a node or a function of the file, where nothing can be inserted.")
        producer = value.producer()
        if producer is not None and producer.graph is None:
            self.refuse(f"{tensor} isn't computed any more: an earlier change took {producer.name} out.")
        return value

    def _single(self, node: Node) -> onnx_ir.Node:
        """The file's node, of which the graph's is all and which gives one result."""
        target = self._target(node)
        if not self._origins[node.name].whole:
            self.refuse(f"{node.name} is one step of {node.layer} ({target.op_type}); change that node's attributes.")
        if any(value.uses() or value.is_graph_output() for value in target.outputs[1:]):
            self.refuse(f"{node.name} ({target.op_type}) gives several results that are read; it can't be replaced.")
        return target

    def _position(self, node: Node, index: int) -> int:
        """Place of an input among those of the file's node."""
        place = self._origins[node.name].inputs[index]
        if place is None:
            self.refuse(f"input {index} of {node.name} is none of the file's node.")
        return place

    def _place(self, node: Node, target: onnx_ir.Node) -> WrittenNode:
        origin = self._origins[node.name]
        first = self.graph.tensors.get(node.inputs[0]) if node.inputs else None
        return WrittenNode(
            self._file,
            self._nodes.get(node.name, node),
            target,
            self._said[node.name],
            None if first is None else first.shape,
            frozenset(origin.parameters.values()),
            origin.whole,
        )

    def _follow(self, node: Node) -> None:
        """Note where the operands are once a constant one has changed places with the other."""
        origin, first = self._origins[node.name], self._said[node.name].get("constant_first")
        place = origin.parameters.get("operand")
        if first is None or self._nodes.get(node.name, node).op in COMMUTATIVE or place not in {0, 1}:
            return
        if (place == 0) != first:
            inputs = tuple(None if item is None else 1 - item for item in origin.inputs)
            self._origins[node.name] = replace(origin, inputs=inputs, parameters={"operand": 1 - place})

    # --- parts of changes -------------------------------------------------------------------------------------

    def _set_tensor(self, node: Node, target: onnx_ir.Node, role: str, array: Array) -> None:
        """Numbers that are an attribute."""
        if role not in target.attributes or target.attributes[role].type != onnx_ir.AttributeType.TENSOR:
            self.refuse(
                f"{node.name}: {role} isn't one constant of {target.op_type} in the file. "
                "Change the attribute that says it, or put a node behind it."
            )
        tensor = target.attributes[role].as_tensor()
        target.attributes[role] = onnx_ir.AttrTensor(role, tensor_of(array, tensor.dtype, tensor.name))

    def _check_sizes(self) -> None:
        """Refuse what doesn't fit together for the sizes that the graph is described for."""
        complaint = contradiction(with_sizes(self._file.model, self._sizes))
        if complaint and contradiction(with_sizes(load_plain(Path(self._model.path))[0], self._sizes)) is None:
            self.refuse(
                f"the changes don't fit together for inputs {', '.join(map(str, self._sizes))}: {complaint}. "
                "Change what else must fit these sizes too, or leave them out."
            )


EDITOR = OnnxEditor

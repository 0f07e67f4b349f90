"""TensorFlow: the operators of a SavedModel's signature, or of a frozen graph."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from conrepair.formats.editing.editor import Editor, NotEditableError
from conrepair.formats.editing.operation import Operation, operation_of
from conrepair.formats.models.model import Model
from conrepair.formats.networks.stored import StoredParameter
from conrepair.formats.tensorflow.edit.file import TensorFlowFile
from conrepair.formats.tensorflow.edit.graft import TensorFlowWriter
from conrepair.formats.tensorflow.edit.save import save_frozen, save_saved_model
from conrepair.formats.tensorflow.read.network import TensorFlowNetwork
from conrepair.formats.tensorflow.read.pieces import canonical_name, data_inputs, operator_of
from conrepair.ground.graph.layer_graph import Array, Attribute, Node, without_sizes
from conrepair.ground.graph.operators import OPERATORS
from conrepair.ground.runtime.files.whole import sha256_of


class TensorFlowEditor(Editor):
    """Changes of one function; layers are called as its operators.

    Numbers are changed where they are. An operator with other attributes is written anew; it reads the variables that
    the old one read, where they're the same.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._file = TensorFlowFile(model)
        self.graph = without_sizes(TensorFlowNetwork(self._file.function, self._file.owner, self._file.sizes).graph)
        self._read = {name: data_inputs(item) for name, item in self._file.operators.items()}  # as in the file
        self._anew: dict[str, Operation] = {}  # nodes that were written anew, as they are by now
        self._numbers: dict[tuple[str, str], Array] = {}
        self._instead: dict[str, str] = {}  # what stands for tensors by now

    def _set_parameter(self, node: Node, role: str, array: Array) -> None:
        """Change a constant or a variable, which becomes the operator's own."""
        parameter = node.parameters.get(role)
        if not isinstance(parameter, StoredParameter):
            self.refuse(f"{node.name} has no {role}")
        self._numbers[node.name, role] = array
        if node.name in self._anew:
            self._write_anew(node, self._anew[node.name].operator, self._anew[node.name].attributes)
            return
        (position,) = parameter.holders
        self._file.set_constant(self._item(node), position, self.stored(node, role, array)[0])

    def set_attributes(self, node: Node, changes: Mapping[str, Attribute]) -> None:
        """The operator is written anew; a ReLU with bounds is a Clip."""
        said = self._anew[node.name] if node.name in self._anew else operation_of(node)
        if said.operator == "Relu" and changes.keys() & {"min", "max"}:
            self._write_anew(node, "Clip", {"min": 0.0, "max": None, **changes})
        else:
            self._write_anew(node, said.operator, {**said.attributes, **changes})

    def set_operator(self, node: Node, operator: str, attributes: Mapping[str, Attribute]) -> None:
        """Another operator, which keeps what both have."""
        said = self._anew[node.name] if node.name in self._anew else operation_of(node)
        known = OPERATORS[operator].attributes if operator in OPERATORS else {}
        kept = {name: value for name, value in said.attributes.items() if name in known}
        self._write_anew(node, operator, {**kept, **attributes})

    def _write_anew(self, node: Node, operator: str, attributes: Mapping[str, Attribute]) -> None:
        roles = OPERATORS[operator].parameters if operator in OPERATORS and operator != node.op else node.parameters
        numbers = {role: self._numbers.get((node.name, role)) for role in node.parameters if role in roles}
        given = {role: node.parameters[role].numpy() if array is None else array for role, array in numbers.items()}
        made = Operation(operator, node.inputs, self._open(node, attributes), given, node.channels_last)
        self.graft(node.outputs[0], (made,), "changed")
        self._anew[node.name] = made

    def _open(self, node: Node, attributes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        """With an open batch where the shape that a node has anyway has one."""
        shape = self._file.specs[canonical_name(node.outputs[0])][0] if node.op == "Reshape" else None
        if shape is None or shape.rank is None or attributes.get("shape") != node.attributes.get("shape"):
            return attributes
        return {**attributes, "shape": tuple(-1 if size is None else int(size) for size in shape.as_list())}

    def remove(self, node: Node, index: int = 0) -> None:
        """Readers take the input instead."""
        item, tensor = self._item(node), node.outputs[0]
        if not node.inputs[index]:
            self.refuse(f"{node.name} has no tensor as its input {index}")
        old, new = self._place(tensor), data_inputs(item)[self._positions(node)[index]]
        readers = self._file.readers(old)
        self._file.replace_output(old, new)
        self._file.redirect(readers, {old: new})
        self._instead[tensor] = new

    def graft(self, tensor: str, operations: Sequence[Operation], label: str, readers: Sequence[Node] = ()) -> None:
        """New operators among the old ones; constants that the tensor's own operator has are read from there."""
        source = self._place(tensor)
        targets = [self._item(item) for item in readers] or self._file.readers(source)
        known = self._constants(operator_of(source))
        writer = TensorFlowWriter(self._file)
        traced = writer.compute(operations, lambda name: writer.operand(self._place(name)))
        result = writer.put_in(traced, f"{operator_of(source)}/{label}", known)
        if not readers:
            self._file.replace_output(source, result)
            self._instead[tensor] = result
        self._file.redirect(targets, {source: result})
        self._file.check_order(tensor)

    def swap_inputs(self, node: Node, one: int, two: int) -> None:
        """Exchange operands."""
        item, positions = self._item(node), self._positions(node)
        first, second = positions[one], positions[two]
        item.input[first], item.input[second] = item.input[second], item.input[first]
        self._file.reshaped = True

    def exchange_reads(self, one: str, two: str, readers: Sequence[Node]) -> None:
        """In what the operators read."""
        first, second = self._place(one), self._place(two)
        self._file.redirect([self._item(reader) for reader in readers], {first: second, second: first})
        self._file.check_order(one)

    def add_output(self, tensor: str, operations: Sequence[Operation] = (), place: int | None = None) -> None:
        """Under a name of its own in the signature."""
        if operations:
            self.refuse(f"{tensor} can't be computed as an output of its own")
        results = self._file.results
        name = next(name for number in itertools.count(len(results)) if (name := f"output_{number}") not in results)
        results[name] = self._place(tensor)
        self._file.reshaped = True

    def drop_output(self, place: int) -> None:
        """Out of the signature."""
        del self._file.results[list(self._file.results)[self._output_now(place)]]
        self._left_out.add(place)
        self._file.reshaped = True

    def exchange_outputs(self, one: int, two: int) -> None:
        """Under the signature's names."""
        results, names = self._file.results, list(self._file.results)
        first, second = names[self._output_now(one)], names[self._output_now(two)]
        results[first], results[second] = results[second], results[first]
        self._file.reshaped = True

    def exchange_inputs(self, one: int, two: int) -> None:
        """Exchange the readers of two tensors."""
        first, second = (canonical_name(self.graph.inputs[place]) for place in (one, two))
        readers = {item.name: item for tensor in (first, second) for item in self._file.readers(tensor)}
        self._file.redirect(list(readers.values()), {first: second, second: first})

    def _set_shape(self, node: Node, shape: tuple[int, ...]) -> None:
        """A constant in the place of what says the shape, open where the file leaves it open."""
        if node.native in {"Reshape", "BroadcastTo"}:
            item = self._item(node)
            known = self._file.specs[canonical_name(node.outputs[0])][0]
            open_axes = [] if known.rank is None else [at for at, size in enumerate(known.as_list()) if size is None]
            table = [-1 if [axis] == open_axes else size for axis, size in enumerate(shape)]
            item.input[1] = self._file.add_constant(np.array(table, np.int32), f"{item.name}/shape")
            item.attr["Tshape" if item.op == "Reshape" else "Tidx"].type = tf.int32.as_datatype_enum

    def _declare_inputs(self, shapes: Mapping[str, Sequence[int | None]]) -> None:
        """In the signature, and in a frozen graph's placeholders."""
        names = {place: name for name, place in self._file.placeholders.items()}
        for tensor, shape in shapes.items():
            self._file.declare(names[operator_of(canonical_name(tensor))], shape)

    def save(self, folder: Path, stem: str) -> Model:
        """A SavedModel's folder, or a frozen graph's .pb."""
        original = Path(self._model.path)
        if original.is_dir():
            path = folder / stem
            try:
                save_saved_model(self._file, original, path)
            except ValueError as error:  # sizes that don't fit together
                raise NotEditableError(f"the graph can't be rebuilt: {error}") from error
        else:
            path = folder / f"{stem}.pb"
            save_frozen(self._file, path)
        return Model("tensorflow", str(path), sha256_of(path), inputs=self._model.inputs)

    # --- where things are -------------------------------------------------------------------------------------

    def _place(self, tensor: str) -> str:
        """The tensor that stands for one by now."""
        if tensor in self._instead:
            return self._instead[tensor]
        known = self.graph.tensors.get(tensor)
        if known is None or not known.observable:
            self.refuse(f"the graph has no tensor {tensor}")
        return canonical_name(tensor)

    def _is_tensor(self, place: str) -> bool:
        return place.removesuffix(":0") in self.graph.tensors

    def _item(self, node: Node) -> Any:
        """The operator that a node is, as it was in the file."""
        parts = [item for item in self.graph.nodes if item.layer == node.layer]
        if len(parts) > 1:
            self.refuse(f"{node.layer} is {' and '.join(item.op for item in parts)} in one")
        if node.name in self._anew:
            self.refuse(f"{node.name} has been written anew")
        return self._file.operators[node.layer]

    def _positions(self, node: Node) -> list[int]:
        """Where an operator reads a node's inputs."""
        original = [place for place, name in enumerate(self._read[node.layer]) if self._is_tensor(name)]
        wanted = sum(map(bool, node.inputs))
        if len(original) != wanted:
            self.refuse(f"{node.name} reads {len(original)} tensors, not {wanted}")
        rest = iter(original)
        return [next(rest) if name else -1 for name in node.inputs]

    def _constants(self, operator: str) -> dict[str, Array]:
        """Numbers that an operator reads, by tensor."""
        item = self._file.operators.get(operator)
        read = [] if item is None else [name for name in data_inputs(item) if self._file.holds_numbers(name)]
        found = {name: self._file.numbers(name) for name in read}
        return {name: array for name, array in found.items() if array is not None}


EDITOR = TensorFlowEditor

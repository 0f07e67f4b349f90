"""Operators of the vocabulary as nodes of an ONNX graph, read in place of one of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import onnx_ir

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.lowering import CHANNELLED, Writer
from conrepair.formats.editing.lowering_windows import WINDOWS
from conrepair.formats.editing.operation import CHOICE, Operation, Sizes, what_is_read
from conrepair.formats.editing.operation_shapes import shape_of_result
from conrepair.formats.onnx.edit.attributes import WrittenNode, write_attributes
from conrepair.formats.onnx.edit.expand import expand, is_newer
from conrepair.formats.onnx.edit.file import OnnxFile, set_inputs
from conrepair.formats.onnx.edit.rewire import hand_over
from conrepair.formats.onnx.edit.write import become, check_operands, check_required
from conrepair.ground.data.following import reached
from conrepair.ground.graph.layer_graph import Array, Node
from conrepair.ground.graph.operators import OPERATORS, QUANTIZING, family

_BEHIND = QUANTIZING | {  # operators with their constants behind the operands, in the vocabulary's order
    *("PRelu", "BatchNormalization", "LayerNormalization", "InstanceNormalization"),
    *WINDOWS,
}
_READ = {"MatMul": {"left", "weight"}, "Gather": {"table", "indices"}, "Where": {*CHOICE}}  # constants among operands
_TRUTHS = {*family("comparison"), *(op for op, item in OPERATORS.items() if item.logical), "IsNaN", "IsInf"}


class OnnxWriter(Writer[onnx_ir.Value]):
    """Builds detached nodes, which are in no graph yet.

    Attributes:
        nodes: The new ones, each behind those that it reads.
    """

    def __init__(self, file: OnnxFile, label: str) -> None:
        """Make a node.

        Args:
            file: It gets the constants.
            label: For the new names.
        """
        self._file, self._label = file, label
        self._shapes: dict[str, Sizes | None] = {}
        self.nodes: list[onnx_ir.Node] = []

    def shape(self, value: onnx_ir.Value) -> Sizes | None:
        """Sizes for the batch that the file was opened for."""
        if value.name in self._shapes:
            return self._shapes[value.name]
        known = self._file.shape(value)
        return None if known is None else tuple(known)

    def write(self, operation: Operation, operands: Sequence[onnx_ir.Value]) -> onnx_ir.Value:
        """A node; several where the file's opset doesn't have the operator."""
        file, operator = self._file, operation.operator
        if operation.channels_last and operator in CHANNELLED:  # of two axes, too: it may lack a scale
            self.refuse(f"ONNX's {operator} has its channels first")
        node = onnx_ir.Node("", operator, [], name=file.free(f"{self._label}/{operator}"))
        result = node.outputs[0]
        result.name = file.free(f"{node.name}/result")
        try:
            result.type = _type_of(operation, [file.dtype(value) for value in operands])
            self._fill(node, operation, operands)
        except NotEditableError:
            detach([node])
            raise
        self._shapes[result.name] = shape_of_result(operation, [self.shape(value) for value in operands])
        return result

    def _fill(self, node: onnx_ir.Node, operation: Operation, operands: Sequence[onnx_ir.Value]) -> None:
        file, operator = self._file, operation.operator
        given = {name: item for name, item in operation.attributes.items() if item is not None}
        given.pop("constant_first", None)
        if "scale" in operation.parameters and operation.parameters["scale"].size == 1:
            given.pop("axis", None)  # of one scale for all channels
        if is_newer(file, operator) and not operation.parameters and len(operands) == 1:
            set_inputs(node, operands)
            self.nodes += [*expand(file, node, operator, given), node]
            return
        become(file, node, operator)
        set_inputs(node, self._inputs(node, operation, operands))
        shape = self.shape(operands[0]) if operands else None
        sizes = (
            None if shape is None or any(size is None for size in shape) else tuple(int(size or 0) for size in shape)
        )
        described = Node(str(node.name), str(node.name), operator, operator, (), (), operation.attributes)
        write_attributes(WrittenNode(file, described, node, {}, sizes, frozenset(), whole=True), given)
        check_operands(file, node)
        check_required(file, node)
        self.nodes.append(node)

    def _inputs(
        self, node: onnx_ir.Node, operation: Operation, operands: Sequence[onnx_ir.Value]
    ) -> list[onnx_ir.Value | None]:
        """Operands and constants, in ONNX's order."""
        operator, given = operation.operator, operation.parameters
        dtype = self._file.dtype(operands[-1 if operator == "Where" else 0]) if operands else None

        def constant(array: Array) -> onnx_ir.Value | None:
            return self._constant(node, array, dtype)

        roles = tuple(OPERATORS[operator].parameters) if operator in _BEHIND else ()
        if not roles:
            if operator not in {"Concat", "Einsum"} and (more := {*given} - _READ.get(operator, {"operand"})):
                self.refuse(f"{operator} has no place for {', '.join(more)}")
            return what_is_read(operation, operands, constant)
        if not {*given} <= {*roles}:
            self.refuse(f"{operator} has no place for {', '.join({*given} - {*roles})}")
        last = max((place for place, role in enumerate(roles, 1) if role in given), default=0)
        return [*operands, *(constant(given[role]) if role in given else None for role in roles[:last])]

    def _constant(self, node: onnx_ir.Node, array: Array, dtype: onnx_ir.DataType | None) -> onnx_ir.Value:
        own = onnx_ir.DataType.from_numpy(np.asarray(array).dtype)
        real = own.is_floating_point() and dtype is not None and dtype.is_floating_point()
        return self._file.constant(f"{node.name}/constant", array, dtype if real and dtype else own)


def graft(
    file: OnnxFile,
    value: onnx_ir.Value,
    operations: Sequence[Operation],
    label: str,
    operand: Callable[[str], onnx_ir.Value],
    readers: Sequence[onnx_ir.Node],
) -> onnx_ir.Value:
    """Let who reads a value read what operations compute, in place.

    Args:
        file: Of the value.
        value: What is read so far.
        operations: What shall be read.
        label: For the new names.
        operand: What stands for a tensor.
        readers: The only nodes that shall read it; all, and the graph's output, if there are none.

    Returns:
        The new nodes' result.

    Raises:
        NotEditableError: if it can't be said, or an operand comes from the value's own readers. Nothing is changed.
    """
    before = [use for use in value.uses() if not readers or use.node in readers]
    if readers and not before:
        raise NotEditableError(f"{readers[0].name} doesn't read {value.name}; nothing can be put between them.")
    is_output = not readers and value.is_graph_output()
    if is_output and value.producer() is None:
        raise NotEditableError(f"{value.name} is input and output at once; a node behind it would rename one.")
    writer = OnnxWriter(file, f"{value.name}/{label}")
    try:
        result = writer.compute(operations, operand)
        _check_order(result, value, [use.node for use in before])
    except NotEditableError:
        detach(writer.nodes)
        raise
    _place(file, writer.nodes, value)
    for use in before:
        use.node.replace_input_with(use.idx, result)
    if is_output:
        hand_over(file, value, result, label)
    file.graph.sort()  # an operand may be computed behind a reader; what's in order stays as it is
    file.forget(value)
    return result


def detach(nodes: Sequence[onnx_ir.Node]) -> None:
    """Let nodes that don't come into the graph read nothing."""
    for node in nodes:
        node.resize_inputs(0)


def _type_of(operation: Operation, dtypes: Sequence[onnx_ir.DataType | None]) -> onnx_ir.TensorType | None:
    dtype = dtypes[0] if dtypes else None
    if operation.operator in _TRUTHS:
        dtype = onnx_ir.DataType.BOOL
    elif operation.operator in {"ArgMax", "ArgMin"}:
        dtype = onnx_ir.DataType.INT64
    elif operation.operator == "Where":
        given = operation.parameters.get("y")
        dtype = dtypes[-1] if given is None else onnx_ir.DataType.from_numpy(given.dtype)
    elif operation.operator == "Cast":
        dtype = onnx_ir.DataType.from_numpy(np.dtype(operation.text("to")))
    elif operation.operator == "QuantizeLinear":
        zero = operation.parameters.get("zero_point")
        dtype = onnx_ir.DataType.UINT8 if zero is None else onnx_ir.DataType.from_numpy(zero.dtype)
    elif operation.operator == "DequantizeLinear":
        dtype = onnx_ir.DataType.FLOAT
    return None if dtype is None else onnx_ir.TensorType(dtype)


def _check_order(result: onnx_ir.Value, value: onnx_ir.Value, readers: Sequence[onnx_ir.Node]) -> None:
    """Refuse a circle: what's computed from a reader can't be what the reader reads."""

    def makers(read: Iterable[onnx_ir.Value | None]) -> list[onnx_ir.Node]:
        nodes = [item.producer() for item in read if item is not None and item is not value]
        return [node for node in nodes if node is not None]

    for node in reached(makers([result]), lambda node: makers(node.inputs)):
        if node in readers:
            raise NotEditableError(f"{node.name} reads {value.name}; it can't be part of what is put in its place.")


def _place(file: OnnxFile, nodes: Sequence[onnx_ir.Node], value: onnx_ir.Value) -> None:
    producer = value.producer()
    if producer is not None and producer.graph is file.graph:
        file.graph.insert_after(producer, nodes)
    elif file.graph.num_nodes():
        file.graph.insert_before(file.graph[0], nodes)
    else:
        file.graph.extend(nodes)

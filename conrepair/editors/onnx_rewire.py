"""Let values of an ONNX graph be read, and named, in other places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir

from conrepair.editors.editor import NotEditableError, Step
from conrepair.editors.onnx_expand import expand, is_newer
from conrepair.editors.onnx_file import OnnxFile
from conrepair.editors.onnx_write import become, names_of_inputs, write
from conrepair.graph.layer_graph import Array

__all__ = ["exchange_outputs", "exchange_readers", "insert_behind", "take_out"]


def take_out(file: OnnxFile, node: onnx_ir.Node, index: int) -> tuple[onnx_ir.Node, ...]:
    """Let all that read a node's first result read one of its inputs, in place.

    Returns:
        Who is at fault then: the neighbours, and the node itself where it stays to keep an output's name.
    """
    source, result = node.inputs[index], node.outputs[0]
    if source is None:
        raise NotEditableError(f"{node.name} has no input {index}; name one that its readers can read instead.")
    before = [value.producer() for value in node.inputs if value is not None]
    around = [item for item in [*before, *(use.node for use in result.uses())] if item is not None]
    for use in list(result.uses()):
        use.node.replace_input_with(use.idx, source)
    if result.is_graph_output():
        old = list(node.inputs)
        become(file, node, "Identity")
        node.resize_inputs(0)
        node.resize_inputs(1)
        node.replace_input_with(0, source)
        node.resize_outputs(1)
        for value in dict.fromkeys(old):
            file.forget(value)
        return tuple(dict.fromkeys([node, *around]))
    file.forget(result)
    return tuple(dict.fromkeys(around))


def insert_behind(
    file: OnnxFile, value: onnx_ir.Value, steps: Sequence[Step], label: str, reader: onnx_ir.Node | None
) -> tuple[onnx_ir.Node, ...]:
    """Put a chain between a value and all that read it, or one of those, in place.

    Returns:
        The new nodes.
    """
    producer = value.producer()
    uses = [use for use in value.uses() if reader is None or use.node is reader]
    if not uses and reader is not None:
        raise NotEditableError(f"{reader.name} doesn't read {value.name}; nothing can be inserted between them.")
    is_output = reader is None and value.is_graph_output()
    if is_output and producer is None:
        raise NotEditableError(f"{value.name} is input and output at once; a chain behind it would rename one.")
    nodes = _chain(file, value, steps, label)
    if producer is not None:
        file.graph.insert_after(producer, nodes)
    elif file.graph.num_nodes():
        file.graph.insert_before(file.graph[0], nodes)
    else:
        file.graph.extend(nodes)
    for use in uses:
        use.node.replace_input_with(use.idx, nodes[-1].outputs[0])
    if is_output:
        _hand_over(file, value, nodes[-1].outputs[0], label)
    return tuple(nodes)


def exchange_readers(one: onnx_ir.Value, two: onnx_ir.Value) -> tuple[onnx_ir.Node, ...]:
    """Let who reads one value read the other, in place.

    Returns:
        The readers.
    """
    if one.is_graph_output() or two.is_graph_output():
        raise NotEditableError(f"{one.name} and {two.name} can't be exchanged: one is an output too, under its name.")
    uses = [(use, other) for value, other in ((one, two), (two, one)) for use in value.uses()]
    for use, other in uses:
        use.node.replace_input_with(use.idx, other)
    return tuple(dict.fromkeys(use.node for use, _ in uses))


def exchange_outputs(file: OnnxFile, one: int, two: int) -> None:
    """Exchange two outputs of the graph, in place; their names stay where they are."""
    outputs = file.graph.outputs
    first, second = outputs[one], outputs[two]
    if first is second:
        return
    for value in (first, second):
        if value.producer() is None or sum(item is value for item in outputs) > 1:
            raise NotEditableError(
                f"{value.name} is an output twice, or an input or a constant too, which keep their name. "
                "Insert an Identity in front of the output first."
            )
    names = str(first.name), str(second.name)
    outputs[one], outputs[two] = second, first
    first.name = file.free(f"{names[0]}/exchanged")
    second.name, first.name = names


def _hand_over(file: OnnxFile, old: onnx_ir.Value, new: onnx_ir.Value, label: str) -> None:
    """Make another value the output that one is, under the same name."""
    outputs = file.graph.outputs
    for place, value in enumerate(list(outputs)):
        if value is old:
            outputs[place] = new
    name = old.name
    old.name = file.free(f"{name}/{label}")
    new.name = name
    new.type, new.shape = old.type, old.shape


def _chain(file: OnnxFile, value: onnx_ir.Value, steps: Sequence[Step], label: str) -> list[onnx_ir.Node]:
    nodes: list[onnx_ir.Node] = []
    dtype = file.dtype(value)
    try:
        for step in steps:
            nodes += _nodes(file, step, nodes[-1].outputs[0] if nodes else value, f"{value.name}/{label}", dtype)
    except NotEditableError:
        _detach(nodes)
        raise
    return nodes


def _nodes(
    file: OnnxFile, step: Step, source: onnx_ir.Value, label: str, dtype: onnx_ir.DataType | None
) -> list[onnx_ir.Node]:
    """One step; several nodes where the file's opset doesn't have the operator."""
    operator, attributes, constants = step
    node = onnx_ir.Node("", operator, [source], name=file.free(f"{label}/{operator}"))
    try:
        result = node.outputs[0]
        result.name = file.free(f"{node.name}/result")
        result.type = None if dtype is None else onnx_ir.TensorType(dtype)
        if is_newer(file, operator) and not constants:
            return [*expand(file, node, operator, attributes), node]
        become(file, node, operator)
        for index, array in enumerate(constants, 1):
            _add_constant(file, node, index, array, dtype)
        for name, given in attributes.items():
            write(file, node, name, given)
    except NotEditableError:
        _detach([node])
        raise
    return [node]


def _detach(nodes: Sequence[onnx_ir.Node]) -> None:
    """Let nodes that don't come into the graph read nothing."""
    for node in nodes:
        node.resize_inputs(0)


def _add_constant(
    file: OnnxFile, node: onnx_ir.Node, index: int, array: Array, data: onnx_ir.DataType | None
) -> None:
    """A constant behind the first input; before operators had such an input, an attribute."""
    schema = file.schema(node)
    if index >= schema.max_input:
        write(file, node, names_of_inputs(node.op_type)[index], np.asarray(array).reshape(-1).tolist()[0])
        return
    own = onnx_ir.DataType.from_numpy(np.asarray(array).dtype)
    real = own.is_floating_point() and data is not None and data.is_floating_point()
    node.resize_inputs(index + 1)
    node.replace_input_with(index, file.constant(f"{node.name}/{index}", array, data if real and data else own))

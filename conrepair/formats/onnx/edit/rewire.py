"""Let values of an ONNX graph be read, and named, in other places."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.onnx.edit.file import OnnxFile, set_inputs
from conrepair.formats.onnx.edit.write import become


def take_out(file: OnnxFile, node: onnx_ir.Node, index: int) -> None:
    """Let all that read a node's first result read one of its inputs, in place; it stays to keep an output's name."""
    source, result = node.inputs[index], node.outputs[0]
    if source is None:
        raise NotEditableError(f"{node.name} has no input {index}; name one that its readers can read instead.")
    for use in list(result.uses()):
        use.node.replace_input_with(use.idx, source)
    if result.is_graph_output():
        old = list(node.inputs)
        become(file, node, "Identity")
        set_inputs(node, [source])
        node.resize_outputs(1)
        for value in dict.fromkeys(old):
            file.forget(value)
        return
    file.forget(result)


def exchange_readers(one: onnx_ir.Value, two: onnx_ir.Value, readers: Sequence[onnx_ir.Node] = ()) -> None:
    """Let who reads one value read the other, in place.

    Args:
        one: The first.
        two: The other one.
        readers: The only nodes that shall; all, if there are none.
    """
    if not readers and (one.is_graph_output() or two.is_graph_output()):
        raise NotEditableError(f"{one.name} and {two.name} can't be exchanged: one is an output too, under its name.")
    uses = [
        (use, other)
        for value, other in ((one, two), (two, one))
        for use in value.uses()
        if not readers or use.node in readers
    ]
    for use, other in uses:
        use.node.replace_input_with(use.idx, other)


def put_in_order(file: OnnxFile) -> None:
    """Sort the nodes, each behind those that it reads; what's in order stays as it is.

    Raises:
        NotEditableError: if nodes read one another in a circle.
    """
    try:
        file.graph.sort()
    except ValueError as error:
        raise NotEditableError(f"a node would read what is computed from it: {error}") from error


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


def hand_over(file: OnnxFile, old: onnx_ir.Value, new: onnx_ir.Value, label: str) -> None:
    """Make another value the output that one is, under the same name."""
    outputs = file.graph.outputs
    for place, value in enumerate(list(outputs)):
        if value is old:
            outputs[place] = new
    name = old.name
    old.name = file.free(f"{name}/{label}")
    new.name = name
    new.type, new.shape = old.type, old.shape

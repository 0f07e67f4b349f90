"""Some nodes of an ONNX graph as a model of its own, as a converter takes it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import onnx_ir

from conrepair.formats.onnx.passes.files import load, save
from conrepair.formats.onnx.passes.inline_functions import inline_functions
from conrepair.formats.onnx.passes.sizes import declare_sizes
from conrepair.formats.onnx.read.source import operands
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes
from conrepair.ground.runtime.errors import UsageError


class NoPieceError(UsageError):
    """The nodes can't stand alone: nothing goes in, or the type of what goes in isn't known."""


def outline(path: str | Path, declared: Collection[TensorSpec], target: Path) -> list[dict[str, Any]]:
    """Write a model so that it can be cut anywhere: functions inlined, types and sizes on all values.

    Args:
        path: Of an ONNX file.
        declared: Sizes of inputs that the file leaves open.
        target: File to write.

    Returns:
        The main graph's nodes, in order: "operator" and "name".
    """
    model = load(path)
    inline_functions(model)
    declare_sizes(model, tuple(declared), None)
    infer_shapes(model)
    save(model, target)
    return [{"operator": node.op_type, "name": node.name or str(node.outputs[0].name)} for node in model.graph]


def piece(model: onnx_ir.Model, places: Collection[int]) -> onnx_ir.Model:
    """Cut nodes out.

    Args:
        model: As `outline` writes it.
        places: Of nodes in its main graph.

    Raises:
        NoPieceError: if they can't stand alone.
    """
    graph = model.graph
    nodes = [node for place, node in enumerate(graph) if place in places]
    made = {id(value) for node in nodes for value in node.outputs}
    constants = {id(value) for value in graph.initializers.values()}
    read = {id(value): value for node in nodes for value in operands(node)}
    weights = [value for key, value in read.items() if key in constants]
    fed = [value for key, value in read.items() if key not in made and key not in constants]
    chosen = {id(node) for node in nodes}
    named = [value for node in nodes for value in node.outputs if value.name]
    given = [
        value
        for value in named
        if value.is_graph_output() or not value.uses() or any(id(use.node) not in chosen for use in value.uses())
    ]
    unknown = [value.name for value in (*fed, *given) if value.type is None or value.shape is None]
    if not fed or not given or unknown:
        reason = f"the type of {unknown[0]} isn't known" if unknown else "they read no input"
        raise NoPieceError(f"{len(nodes)} nodes can't be cut out: {reason}")
    view = onnx_ir.GraphView(
        fed, given, nodes=nodes, initializers=tuple(weights), opset_imports=graph.opset_imports, name="piece"
    )
    return onnx_ir.Model(view.clone(), ir_version=model.ir_version, producer_name=model.producer_name)

"""Other ways to write the same ONNX model: none of them is a fault."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx.inliner
import onnx_ir
from onnx_ir.passes.common import LiftConstantsToInitializersPass

from conrepair.formats.onnx.passes.fold_constants import fold_constants
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes

__all__ = ["REWRITINGS"]

Rewriting = Callable[[onnx_ir.Model, np.random.Generator], onnx_ir.Model]

_COMPOSED = ("LayerNormalization", "Gelu", "HardSwish", "Mish", "Softmax", "LogSoftmax", "Softplus", "Elu", "Selu")
_PADDED = ("Conv",)


def _renamed(model: onnx_ir.Model, generator: np.random.Generator) -> onnx_ir.Model:
    """Every node and value, the graph's inputs and outputs too."""
    values = {value for node in model.graph for value in (*node.inputs, *node.outputs) if value is not None}
    everything = [*model.graph, *sorted(values, key=lambda value: str(value.name))]
    numbers = generator.permutation(len(everything))
    # Initializers are kept by name, so that they have to be told.
    held = dict(model.graph.initializers)
    model.graph.initializers.clear()
    for item, number in zip(everything, numbers, strict=True):
        if item.name:
            item.name = f"x{number}"
    for value in held.values():
        model.graph.register_initializer(value)
    return model


def _unnamed(model: onnx_ir.Model, _: np.random.Generator) -> onnx_ir.Model:
    """Nodes without names, which ONNX allows."""
    for node in model.graph:
        node.name = ""
    return model


def _reordered(model: onnx_ir.Model, generator: np.random.Generator) -> onnx_ir.Model:
    """Another topological order of the nodes, another order of the initializers."""
    waiting, ready = list(model.graph), set()
    model.graph.remove(waiting)
    order = []
    while waiting:
        free = [node for node in waiting if not _producers(node) - ready]
        chosen = free[int(generator.integers(len(free)))]
        waiting.remove(chosen)
        ready.add(chosen)
        order.append(chosen)
    model.graph.extend(order)
    held = list(model.graph.initializers.values())
    model.graph.initializers.clear()
    for index in generator.permutation(len(held)):
        model.graph.register_initializer(held[int(index)])
    return model


def _producers(node: onnx_ir.Node) -> set[onnx_ir.Node]:
    found = (value.producer() for value in node.inputs if value is not None)
    return {producer for producer in found if producer is not None}


def _folded(model: onnx_ir.Model, _: np.random.Generator) -> onnx_ir.Model:
    """Constants as initializers, what follows from them computed."""
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    infer_shapes(model)
    fold_constants(model)
    return model


def _composed(model: onnx_ir.Model, _: np.random.Generator) -> onnx_ir.Model:
    """Composed operators written as the functions that ONNX's standard defines them by."""
    return _inlined(model, _COMPOSED, exclude=False)


def _primitive(model: onnx_ir.Model, _: np.random.Generator) -> onnx_ir.Model:
    """Everything that has a function: rectifiers and Clip too."""
    return _inlined(model, (), exclude=True)


def _inlined(model: onnx_ir.Model, operators: tuple[str, ...], *, exclude: bool) -> onnx_ir.Model:
    infer_shapes(model)
    proto = onnx_ir.to_proto(model)
    names = [("", name) for name in operators]
    return onnx_ir.from_proto(
        onnx.inliner.inline_selected_functions(proto, names, exclude=exclude, inline_schema_functions=True)
    )


def _padded_before(model: onnx_ir.Model, _: np.random.Generator) -> onnx_ir.Model:
    """Padding of convolutions as nodes of their own."""
    for node in list(model.graph):
        pads = node.attributes.get("pads")
        if node.op_type not in _PADDED or pads is None or not any(sizes := list(pads.as_ints())):
            continue
        half = len(sizes) // 2
        amounts = np.array([0, 0, *sizes[:half], 0, 0, *sizes[half:]], np.int64)
        constant = onnx_ir.Value(
            name=f"{node.name}.amounts",
            const_value=onnx_ir.tensor(amounts, name=f"{node.name}.amounts"),
            type=onnx_ir.TensorType(onnx_ir.DataType.INT64),
            shape=onnx_ir.Shape(amounts.shape),
        )
        model.graph.register_initializer(constant)
        pad = onnx_ir.node("Pad", [node.inputs[0], constant], name=f"{node.name}.pad")
        pad.outputs[0].name = f"{node.name}.padded"
        model.graph.insert_before(node, pad)
        node.replace_input_with(0, pad.outputs[0])
        node.attributes["pads"] = onnx_ir.AttrInt64s("pads", [0] * len(sizes))
    return model


REWRITINGS: dict[str, Rewriting] = {
    "renamed": _renamed,
    "unnamed": _unnamed,
    "reordered": _reordered,
    "folded": _folded,
    "composed operators as functions": _composed,
    "all operators as functions": _primitive,
    "pads before convolutions": _padded_before,
}

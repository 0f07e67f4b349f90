"""What all patterns do with the graph: follow values, run a part, compare, let one node take the place of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx_ir

from conrepair.ground.equations.expression import Term, parse
from conrepair.ground.equations.matching import Match, matched
from conrepair.ground.equations.operators import OTHERS
from conrepair.ground.onnx_graphs.computing import computing, leading_to
from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.onnx_graphs.infer_shapes import rank_of
from conrepair.ground.onnx_graphs.initializers import constant_of, new_initializer
from conrepair_onnx_keras.importer.constants import run
from conrepair_onnx_keras.importer.values import Array

_TOLERANCE = 2e-5
_CHEAP = {"Cast", "Concat", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}


def compute_constants(graph: onnx_ir.Graph, opsets: Mapping[str, int]) -> None:
    """Note the values of what's only a rearrangement of constants."""
    for node in graph:
        if node.op_type in _CHEAP and all(item is None or constant_of(item) is not None for item in node.inputs):
            for value in node.outputs:
                array = compute(value, {}, opsets)
                if array is not None:
                    value.const_value = onnx_ir.tensor(array, name=value.name)


def compute(
    wanted: onnx_ir.Value,
    feeds: Mapping[onnx_ir.Value, Array],
    opsets: Mapping[str, int],
    sizes: Mapping[str, int] | None = None,
) -> Array | None:
    """The value that the nodes between some values and another one compute.

    Args:
        wanted: What is asked for.
        feeds: Arrays for values; everything else must follow from them, from constants and from sizes.
        opsets: Of the model.
        sizes: What sizes that have names shall be, where nodes ask for the shape of other values.

    Returns:
        The array; None if other values take part, if the region is large, or if ONNX Runtime can't compute it.
    """
    found = leading_to([wanted], feeds, lambda node: _shape(node, feeds, sizes or {}))
    if found is None:
        return None
    fed = {str(value.name): array for value, array in feeds.items()}
    model = computing(found.nodes, fed, [str(wanted.name)], opsets, found.constants)
    try:
        return np.asarray(run(model, fed)[0])
    # onnxruntime raises one class per status code, without a common base; what can't be run isn't what it looks like.
    except Exception:  # noqa: BLE001
        return None


def _shape(node: onnx_ir.Node, feeds: Mapping[onnx_ir.Value, Array], sizes: Mapping[str, int]) -> Array | None:
    """What Shape gives, where all sizes are known."""
    value = node.inputs[0] if node.op_type == "Shape" else None
    if value is None or value in feeds or value.shape is None:
        return None
    found = [size if isinstance(size, int) else sizes.get(str(size.value)) for size in value.shape]
    if None in found:
        return None
    return np.asarray(found[attribute(node, "start") : attribute(node, "end")], np.int64)


def replace_value(value: onnx_ir.Value, node: onnx_ir.Node) -> None:
    """Let a new node's output take a value's place; what led to it alone is removed later."""
    producer = value.producer()
    assert producer is not None  # noqa: S101 - it was reached from one
    new, name = node.outputs[0], value.name
    new.shape, new.type = value.shape, value.type
    graph_of(producer).insert_after(producer, node)
    value.replace_all_uses_with(new, replace_graph_outputs=True)
    value.name, new.name = f"{name}_replaced", name


def graph_of(node: onnx_ir.Node) -> onnx_ir.Graph:
    """The graph that a node is in."""
    assert isinstance(node.graph, onnx_ir.Graph)  # noqa: S101 - only nodes of the model's graph are looked at
    return node.graph


def agree(expected: Array | None, got: Array | None) -> bool:
    """Whether two results are the same but for rounding; None is no result."""
    if expected is None or got is None or expected.shape != got.shape:
        return False
    scale = max(float(np.max(np.abs(expected), initial=0)), 1e-3)
    return bool(np.all(np.isfinite(got)) and np.max(np.abs(expected - got), initial=0) <= _TOLERANCE * scale)


def scalar_steps(value: onnx_ir.Value, operators: set[str]) -> Iterator[onnx_ir.Value]:
    """A value, and those it was made from by operators with constants."""
    while True:
        yield value
        producer = value.producer()
        if producer is None or producer.op_type not in operators:
            return
        rest = [item for item in producer.inputs if item is not None and constant_of(item) is None]
        if len({id(item) for item in rest}) != 1:
            return
        value = rest[0]


# LayerNormalization and GELU, by their equations.


_COPIES = {"Cast", "Identity"}
_TYPES = {onnx_ir.DataType.FLOAT, onnx_ir.DataType.DOUBLE}


def join_equations(model: onnx_ir.Model) -> None:
    """Let one node take the place of those that compute what it computes, rounding apart; largest places first."""
    joined: set[onnx_ir.Node] = set()
    opset = model.opset_imports.get("", 1)
    for node in model.graph:
        if node.op_type in _COPIES and not node.domain:
            _read_through(node)
    for node in reversed(list(model.graph)):
        if node.op_type in _ROOTS and node not in joined and node.outputs[0].dtype in _TYPES:
            for call, equation in _WRITTEN:
                match = matched(equation, node, opset, real=True)
                if match is None or rank_of(match.values["x"]) != rank_of(node.outputs[0]):
                    continue  # or a constant has more axes
                made = _MADE[call.operator](call, node, match)
                if made is not None:
                    joined |= set(match.nodes)
                    replace_value(node.outputs[0], made)
                    break


def _gelu(call: Term, root: onnx_ir.Node, match: Match) -> onnx_ir.Node | None:
    approximate = onnx_ir.AttrString("approximate", "tanh" if call.attributes else "none")
    return onnx_ir.Node("conrepair", "Gelu", [match.values["x"]], [approximate], name=root.name)


def _layer_normalization(call: Term, root: onnx_ir.Node, match: Match) -> onnx_ir.Node | None:
    """Along the last axis, with constant rows."""
    x, epsilon = match.values["x"], constant_of(match.values["epsilon"])
    width = x.shape[-1] if x.shape is not None else None
    rows = {name: constant_of(match.values[name]) for name in ("scale", "bias") if name in match.values}
    wrong = any(row is None or row.size != width or row.shape[-1:] != (width,) for row in rows.values())
    along_last = match.numbers["axes"] == [(rank_of(x) or 0) - 1] and match.numbers["keepdims"]
    if wrong or not along_last or epsilon is None or epsilon.size != 1:
        return None
    inputs = [x]
    for name, row in rows.items():
        if row is not None:
            inputs.append(new_initializer(graph_of(root), f"{root.outputs[0].name}_{name}", row.reshape(-1)))
    attributes = [onnx_ir.AttrInt64("axis", -1), onnx_ir.AttrFloat32("epsilon", float(epsilon.item()))]
    return onnx_ir.Node("", "LayerNormalization", inputs, attributes, name=root.name)


_ROOTS = {"Add", "Div", "Mul"}
_MADE = {"Gelu": _gelu, "LayerNormalization": _layer_normalization}
_WRITTEN = [
    (call, parse(text)) for name, text in OTHERS if isinstance(call := parse(name), Term) and call.operator in _MADE
]


def _read_through(node: onnx_ir.Node) -> None:
    """Let the readers of a copy of the same type read what it copies."""
    given, end = node.inputs[0], node.outputs[0]
    if given is not None and given.dtype is not None and given.dtype == end.dtype and not end.is_graph_output():
        end.replace_all_uses_with(given)

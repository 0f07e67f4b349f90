"""LayerNormalization and GELU, by their equations."""

from __future__ import annotations

import onnx_ir

from conrepair.equations.expression import Term, parse
from conrepair.equations.matching import Match, matched
from conrepair.equations.operators import OTHERS
from conrepair.importer.patterns.rewriting import graph_of, replace_value
from conrepair.onnx_passes.infer_shapes import rank_of
from conrepair.onnx_passes.initializers import constant_of, new_initializer

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

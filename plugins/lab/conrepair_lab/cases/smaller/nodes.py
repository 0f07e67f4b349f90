"""Fewer outputs, fewer nodes, and nodes that are passed by."""

from __future__ import annotations

import functools

import numpy as np
import onnx

from conrepair_lab.cases.draft import Change, Draft, Level, keep, needed


def _outputs(draft: Draft) -> list[Change]:
    """Outputs that can be spared, with all that only they need."""
    return [functools.partial(_without_output, name=item.name) for item in draft.model.graph.output]


def _without_output(draft: Draft, name: str) -> None:
    graph = draft.model.graph
    keep(graph.output, lambda item: item.name != name)
    _only(draft, {_called(node) for node in needed(graph)})


def _nodes(draft: Draft) -> list[Change]:
    """Nodes in an order in which what feeds one of them, and what that needs, stand in a row before it."""
    return [functools.partial(_without_node, name=_called(node)) for node in needed(draft.model.graph)]


def _without_node(draft: Draft, name: str) -> None:
    _only(draft, {_called(node) for node in draft.model.graph.node} - {name})


def _only(draft: Draft, kept: set[str]) -> None:
    keep(draft.model.graph.node, lambda node: _called(node) in kept)


def _passed(draft: Draft) -> list[Change]:
    """Nodes whose result is like an operand, which then stands for it."""
    outputs = {item.name for item in draft.model.graph.output}
    found: list[Change] = []
    for node in draft.model.graph.node:
        name = _called(node)
        alike = (place for place, operand in enumerate(node.input) if _alike(draft, operand, name))
        if name not in outputs and (place := next(alike, None)) is not None:
            found.append(functools.partial(_pass_by, name=name, place=place))
    return found


def _alike(draft: Draft, one: str, two: str) -> bool:
    left, right = (draft.inputs.get(name, draft.values.get(name)) for name in (one, two))
    if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray):
        return False
    return (left.shape, left.dtype) == (right.shape, right.dtype)


def _pass_by(draft: Draft, name: str, place: int) -> None:
    nodes = draft.model.graph.node
    operand = next(node.input[place] for node in nodes if _called(node) == name)
    for node in nodes:
        node.input[:] = [operand if called == name else called for called in node.input]
    _without_node(draft, name)


def _called(node: onnx.NodeProto) -> str:
    """A node by its first result, which no other has."""
    return next(filter(None, node.output), "")


NODES: tuple[Level, ...] = (_outputs, _nodes, _passed)

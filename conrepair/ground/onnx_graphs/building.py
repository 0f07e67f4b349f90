"""New nodes in the place of old ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir

from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.onnx_graphs.initializers import constant_of, new_initializer


def main_nodes(model: onnx_ir.Model, *operators: str) -> list[onnx_ir.Node]:
    """Nodes of the main graph by operator, of ONNX's own domain, in order."""
    return [node for node in model.graph if node.op_type in operators and node.domain in {"", "ai.onnx"}]


def axes_of(node: onnx_ir.Node, rank: int) -> list[int] | None:
    """The axes that a node names, as attribute or as input, counted from the front; None where they aren't known."""
    given = attribute(node, "axes")
    if given is None and len(node.inputs) > 1:
        given = constant_of(node.inputs[1])
    return None if given is None else sorted(int(axis) % rank for axis in given)


def only_use(value: onnx_ir.Value) -> onnx_ir.Node | None:
    """The only node that uses a value; None when there are more, or the graph returns it."""
    uses = list(value.uses())
    return uses[0].node if len(uses) == 1 and not value.is_graph_output() else None


class Builder:
    """Makes nodes that take a node's place.

    Args:
        node: Of a main graph.
        label: What the names of new nodes begin with; default: the name of the node's result.
    """

    def __init__(self, node: onnx_ir.Node, label: str | None = None) -> None:
        if node.graph is None or not isinstance(node.graph, onnx_ir.Graph):
            raise ValueError(f"{node.name} is in no graph")
        self._old, self._graph = node, node.graph
        self._label = label or node.outputs[0].name
        self._nodes: list[onnx_ir.Node] = []

    def op(self, operator: str, inputs: Sequence[onnx_ir.Value | None], **attributes: Any) -> onnx_ir.Value:
        """Add a node; returns its only output.

        Args:
            operator: ONNX's name.
            inputs: In order; None for one that is left out.
            attributes: Of the operator.
        """
        name = f"{self._label}/{operator}_{len(self._nodes)}"
        node = onnx_ir.node(operator, list(inputs), attributes, name=name)
        node.outputs[0].name = name
        self._nodes.append(node)
        return node.outputs[0]

    def constant(self, array: npt.ArrayLike, dtype: Any = np.int64) -> onnx_ir.Value:
        """Add an initializer."""
        taken = self._graph.initializers
        name = next(
            name for number in range(len(taken) + 1) if (name := f"{self._label}/constant_{number}") not in taken
        )
        return new_initializer(self._graph, name, np.asarray(array, dtype))

    def finish(self, result: onnx_ir.Value, *others: onnx_ir.Node) -> None:
        """Let those who read the node read another value, and remove it.

        Args:
            result: Takes the name of the node's output.
            others: Nodes in front of it to remove too; nobody else reads them.
        """
        onnx_ir.convenience.replace_nodes_and_values(
            self._graph, self._old, [self._old, *reversed(others)], self._nodes, [self._old.outputs[0]], [result]
        )

"""The tables that integer inputs of a TensorFlow graph are looked up in, through the functions that it calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Any

import tensorflow as tf

CALLS = {"PartitionedCall", "StatefulPartitionedCall"}
# Operators that hand an index on, and which of their inputs; negative indices are made positive by SelectV2.
_VALUES = {
    **dict.fromkeys(("Cast", "ExpandDims", "Identity", "Reshape", "Squeeze"), slice(0, 1)),
    **dict.fromkeys(("Select", "SelectV2"), slice(1, 3)),
    **dict.fromkeys(("Maximum", "Minimum"), slice(0, 2)),
}
_TABLES = {"Identity", "ReadVariableOp"}
_BACK = "NextIteration"  # closes the circle of TensorFlow 1's loops
_LOOKUPS = {"Gather", "GatherV2", "ResourceGather"}


def table_sizes(function: Any) -> dict[str, int]:
    """The smallest table that each input is looked up in.

    Args:
        function: Concrete; its inputs are placeholders of its graph.

    Returns:
        Sizes by the name of the argument, or of the placeholder that has none; inputs that are looked up in no
        table of known size are left out.
    """
    definition = function.graph.as_graph_def()
    functions = {item.signature.name: item for item in definition.library.function}
    shapes = {id(variable.handle): variable.shape for variable in function.graph.variables}
    scope = _Scope(functions, {})
    for external, placeholder in function.graph.captures:
        if id(external) in shapes:
            scope.tables[placeholder.op.name] = shapes[id(external)].as_list()
    captured = {placeholder.op.name for _, placeholder in function.graph.captures}
    for node in definition.node:
        if node.op == "Placeholder" and node.name not in captured:
            scope.inputs[node.name] = node.attr["_user_specified_name"].s.decode() or node.name
    scope.walk(definition.node)
    return scope.sizes


@dataclass
class _Scope:
    """What is known of the values of one function, by node.

    Attributes:
        functions: Of the library, by name.
        sizes: Found so far, shared by all scopes.
        inputs: Which input of the whole a value is.
        tables: Shapes of constants and variables.
        axes: Constant scalars.
    """

    functions: Mapping[str, Any]
    sizes: dict[str, int]
    inputs: dict[str, str] = field(default_factory=dict)
    tables: dict[str, list[int]] = field(default_factory=dict)
    axes: dict[str, int] = field(default_factory=dict)

    def walk(self, nodes: Iterable[Any]) -> None:
        """Follow the nodes in the order of their dependencies."""
        by_name = {node.name: node for node in nodes}
        reads = {name: [] if node.op == _BACK else _operands(node) for name, node in by_name.items()}
        for name in TopologicalSorter(reads).static_order():
            if name in by_name:  # else it's an argument
                self._visit(by_name[name], _operands(by_name[name]))

    def _visit(self, node: Any, operands: list[str]) -> None:
        if node.op == "Const":
            tensor = node.attr["value"].tensor
            self.tables[node.name] = [dim.size for dim in tensor.tensor_shape.dim]
            if not self.tables[node.name]:
                self.axes[node.name] = tf.make_ndarray(tensor).item()
        elif node.op in CALLS:
            self._call(node, operands)
        elif node.op in _LOOKUPS:
            self._look_up(node, operands)
        if node.op in _VALUES:
            origin = next((self.inputs[name] for name in operands[_VALUES[node.op]] if name in self.inputs), None)
            if origin is not None:
                self.inputs[node.name] = origin
        if node.op in _TABLES and operands[0] in self.tables:
            self.tables[node.name] = self.tables[operands[0]]

    def _look_up(self, node: Any, operands: list[str]) -> None:
        table, origin = self.tables.get(operands[0]), self.inputs.get(operands[1])
        axis = self.axes.get(operands[2]) if node.op == "GatherV2" else 0
        if table is not None and origin is not None and axis is not None:
            self.sizes[origin] = min(table[axis], self.sizes.get(origin, table[axis]))

    def _call(self, node: Any, operands: list[str]) -> None:
        called = self.functions[node.attr["f"].func.name]
        names = [argument.name for argument in called.signature.input_arg]
        inner = _Scope(self.functions, self.sizes)
        for name, operand in zip(names, operands, strict=True):
            if operand in self.inputs:
                inner.inputs[name] = self.inputs[operand]
            if operand in self.tables:
                inner.tables[name] = self.tables[operand]
        inner.walk(called.node_def)


def _operands(node: Any) -> list[str]:
    """Names of the nodes or arguments that a node reads; not those that it only waits for."""
    return [name.partition(":")[0] for name in node.input if not name.startswith("^")]

"""Variables that a TensorFlow function assigns when it's called, and that the next call goes on from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

_ASSIGNS = re.compile(r"Assign(Add|Sub)?VariableOp|ResourceScatter\w+|ResourceStridedSliceAssign")
_HANDLE = "VarHandleOp"
_PASSES = {"Enter", "Identity", "NextIteration", "Switch"}  # a handle on
_CHOOSES = {"Case", "If", "StatelessCase", "StatelessIf"}  # by their first input, which no function gets


def states_of(function: Any) -> tuple[Any, ...]:
    """The variables that a call changes.

    Args:
        function: A concrete function.
    """
    variables = {id(variable.handle): variable for variable in getattr(function.graph, "variables", ())}
    if not variables:
        return ()
    graph = function.graph.as_graph_def()
    library = {item.signature.name: item for item in graph.library.function}
    assigned = _assigned(graph.node, library, set())
    captures = [(outer, inner.op.name) for outer, inner in function.graph.captures]
    return tuple(variables[id(outer)] for outer, name in captures if name in assigned and id(outer) in variables)


def states_in(graph: Any, nodes: Iterable[Any]) -> tuple[str, ...]:
    """The same of a graph that isn't loaded, by name.

    Args:
        graph: A GraphDef.
        nodes: Of it, those that a call needs.
    """
    handles = {node.name: node.attr["shared_name"].s.decode() or node.name for node in nodes if node.op == _HANDLE}
    assigned = _assigned(nodes, {item.signature.name: item for item in graph.library.function}, set())
    return tuple(handles[name] for name in handles if name in assigned)


def _assigned(nodes: Iterable[Any], library: dict[str, Any], within: set[str]) -> set[str]:
    """Names of nodes and arguments whose variables are assigned.

    Args:
        nodes: Of a graph or a function.
        library: The functions.
        within: Those that are looked into already: they may call themselves.
    """
    by_name = {node.name: node for node in nodes}

    def origin(name: str) -> str:
        node = by_name.get(name.partition(":")[0])
        return origin(node.input[0]) if node is not None and node.op in _PASSES else name.partition(":")[0]

    return {origin(name) for node in by_name.values() for name in _changed(node, library, within)}


def _changed(node: Any, library: dict[str, Any], within: set[str]) -> Iterator[str]:
    """Inputs of a node whose variables it assigns, by itself or by a function that it calls."""
    if _ASSIGNS.fullmatch(node.op):
        yield node.input[0]
    given = [name for name in node.input if not name.startswith("^")][node.op in _CHOOSES :]
    for name in _callees(node):
        if name in library and name not in within:
            function = library[name]
            assigned = _assigned(function.node_def, library, within | {name})
            arguments = [item.name for item in function.signature.input_arg]
            yield from (value for value, argument in zip(given, arguments, strict=False) if argument in assigned)


def _callees(node: Any) -> list[str]:
    functions = [item for value in node.attr.values() for item in (value.func, *value.list.func)]
    return [node.op, *(item.name for item in functions if item.name)]

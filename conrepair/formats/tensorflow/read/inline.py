"""A TensorFlow graph without calls: functions' operators in the place of the operators that call them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.framework import function_def_to_graph

from conrepair.formats.tensorflow.load.tables import CALLS
from conrepair.formats.tensorflow.read.pieces import canonical_name
from conrepair.ground.runtime.words import free_name


class _Inliner:
    def __init__(self, definition: Any) -> None:
        self.functions = {item.signature.name: item for item in definition.library.function}
        self.operators: list[Any] = []
        self.replaced: dict[str, str] = {}
        self.taken = {item.name for item in definition.node}

    def add(self, item: Any) -> None:
        name = item.attr["f"].func.name if item.op in CALLS else ""
        if name not in self.functions:
            self.operators.append(item)
            return
        function = self.functions[name]
        body, tensors = function_def_to_graph.function_def_to_graph_def(function)
        given = [canonical_name(source) for source in item.input if not source.startswith("^")]
        names = {inner.name: self._name(item.name, inner.name) for inner in body.node}
        for argument, source in zip(function.signature.input_arg, given, strict=True):
            self.replaced[f"{names[argument.name]}:0"] = source
        for index, result in enumerate(function.signature.output_arg):
            inner, _, position = canonical_name(tensors[function.ret[result.name]]).rpartition(":")
            self.replaced[f"{item.name}:{index}"] = f"{names[inner]}:{position}"
        arguments = {argument.name for argument in function.signature.input_arg}
        for inner in body.node:
            if inner.name not in arguments:
                sources = [canonical_name(source) for source in inner.input if not source.startswith("^")]
                del inner.input[:]
                inner.input.extend(
                    f"{names[source.rpartition(':')[0]]}:{source.rpartition(':')[2]}" for source in sources
                )
                inner.name = names[inner.name]
                self.add(inner)

    def _name(self, call: str, inner: str) -> str:
        """As it stands in the function, where no other operator is called so."""
        free = free_name(inner if inner not in self.taken else f"{call}/{inner}", self.taken, "_")
        self.taken.add(free)
        return free

    def origin(self, reference: str) -> str:
        name = canonical_name(reference)
        while name in self.replaced:
            name = self.replaced[name]
        return name


def inlined(definition: Any, results: list[str]) -> tuple[list[Any], list[str]]:
    """Put functions' operators in the place of calls.

    Loops and conditions (While, If) keep their functions: what runs there depends on values.

    Args:
        definition: A GraphDef.
        results: Tensors of its top.

    Returns:
        The operators, and where the results are among them.
    """
    inliner = _Inliner(definition)
    for item in definition.node:
        copy = tf.compat.v1.NodeDef()
        copy.CopyFrom(item)
        inliner.add(copy)
    for item in inliner.operators:
        sources = [inliner.origin(source) for source in item.input if not source.startswith("^")]
        del item.input[:]
        item.input.extend(sources)
    return inliner.operators, [inliner.origin(name) for name in results]

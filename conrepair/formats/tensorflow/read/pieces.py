"""Any piece of a TensorFlow graph as a function, cut where tensors are fed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from conrepair.ground.data.following import reached

_LIFTED = 1024  # numbers; smaller constants are also sizes and axes, which the framework wants to see


def canonical_name(reference: str) -> str:
    """A tensor as "operator:index"; the index 0 may be left out in a file."""
    return reference if ":" in reference else f"{reference}:0"


def operator_of(reference: str) -> str:
    """The operator that a tensor comes from."""
    return reference.partition(":")[0]


def data_inputs(definition: Any) -> list[str]:
    """The tensors that an operator reads; not those that it only waits for."""
    return [canonical_name(name) for name in definition.input if not name.startswith("^")]


def lift_constants(operators: Iterable[Any], captures: dict[str, Any]) -> list[Any]:
    """Replace large constants by placeholders, so that pieces share them and don't copy them.

    Args:
        operators: NodeDefs; those of large constants are left out of the result.
        captures: Tensors by the name of the placeholder that stands for them; what's lifted is added.
    """
    rest = []
    for definition in operators:
        if definition.op == "Const":
            sizes = [dim.size for dim in definition.attr["value"].tensor.tensor_shape.dim]
            kind = tf.as_dtype(definition.attr["dtype"].type)
            if int(np.prod(sizes, dtype=np.int64)) >= _LIFTED and kind != tf.string:
                captures[definition.name] = tf.constant(tf.make_ndarray(definition.attr["value"].tensor))
                continue
        rest.append(definition)
    return rest


@dataclass(frozen=True)
class _Needed:
    """What a piece consists of: its operators, the fed tensors that they read, and the captured ones."""

    operators: list[Any]
    fed: list[str]
    captures: list[str]


class GraphPieces:
    """A graph without functions at its top, of which pieces can be made.

    Variables and large constants are captured: all pieces share them.

    Attributes:
        operators: NodeDefs by name, in the file's order, without the placeholders of `captures`.
        captures: Tensors (variables' handles, large constants) by the name of the placeholder they stand for.
    """

    def __init__(self, operators: Iterable[Any], captures: Mapping[str, Any], definition: Any) -> None:
        """Take the graph over.

        Args:
            operators: NodeDefs.
            captures: See above.
            definition: The GraphDef that holds the functions which operators call, and the version.
        """
        self.captures = dict(captures)
        self.operators = {}
        for item in operators:
            # Who waits for whom matters for side effects alone, and would tie pieces to all in front of them.
            kept = [name for name in item.input if not name.startswith("^")]
            if len(kept) != len(item.input):
                del item.input[:]
                item.input.extend(kept)
            for attribute in ("_output_shapes", "_class"):
                if attribute in item.attr:
                    del item.attr[attribute]
            if item.name not in self.captures:
                self.operators[item.name] = item
        self._functions = {item.signature.name: item for item in definition.library.function}
        self._gradients = definition.library.gradient
        self._versions = definition.versions

    def needed(self, fed: Set[str] | Mapping[str, Any], wanted: Iterable[str]) -> _Needed:
        """What computes some tensors from others; wanted ones are computed even when they are fed.

        Args:
            fed: Tensors as "operator:index"; a set or a mapping.
            wanted: Tensors.
        """
        read: dict[str, bool] = {}

        def computing(name: str) -> list[str]:
            sources = [] if name in self.captures else data_inputs(self.operators[name])
            read.update((source, True) for source in sources if source in fed)
            return [operator_of(source) for source in sources if source not in fed]

        found = reached(map(operator_of, wanted), computing)
        operators = [item for name, item in self.operators.items() if name in found]
        return _Needed(operators, [*read], [name for name in found if name in self.captures])

    def function(self, fed: Mapping[str, Any], wanted: Sequence[str], *, sizes: bool = False) -> Any:
        """Make a function of some tensors.

        Args:
            fed: `tf.TensorSpec`s by tensor; all must be read by what is wanted.
            wanted: Tensors.
            sizes: Compute the tensors' sizes and not the tensors.

        Returns:
            A function that takes tensors in the order of `fed` and returns a list.
        """
        piece = self.needed(fed, wanted)
        definition = tf.compat.v1.GraphDef()
        definition.versions.CopyFrom(self._versions)
        definition.node.extend(piece.operators)
        self._add_functions(definition)

        def build(*placeholders: Any) -> list[Any]:
            graph = tf.compat.v1.get_default_graph()
            replaced = dict(zip(fed, placeholders, strict=True))
            for name in piece.captures:
                replaced[f"{name}:0"] = graph.capture(self.captures[name])
            used = {source for item in piece.operators for source in data_inputs(item)}
            tf.compat.v1.import_graph_def(
                definition, input_map={name: tensor for name, tensor in replaced.items() if name in used}, name=""
            )
            # A captured tensor can be wanted itself; one that's both fed and wanted is the operator's own.
            own = {item.name for item in piece.operators}
            results = [
                graph.get_tensor_by_name(name) if operator_of(name) in own else tf.identity(replaced[name])
                for name in wanted
            ]
            return list(map(tf.shape, results)) if sizes else results

        # The placeholders' names must not be any operator's.
        signature = [
            tf.TensorSpec(spec.shape, spec.dtype, name=f"conrepair_fed_{index}")
            for index, spec in enumerate(fed.values())
        ]
        return tf.compat.v1.wrap_function(build, signature)

    def _add_functions(self, definition: Any) -> None:
        """Take along the functions that the operators call, and those that these call."""

        def called(operators: Iterable[Any]) -> list[str]:
            return [name for item in operators for name in _called(item) if name in self._functions]

        added = reached(called(definition.node), lambda name: called(self._functions[name].node_def))
        definition.library.function.extend(self._functions[name] for name in added)
        definition.library.gradient.extend(item for item in self._gradients if item.function_name in added)


def _called(definition: Any) -> list[str]:
    """Names of the functions in an operator's attributes, or of the one that it is a call of."""
    names = [definition.op]
    for value in definition.attr.values():
        kind = value.WhichOneof("value")
        if kind == "func":
            names.append(value.func.name)
        elif kind == "list":
            names.extend(function.name for function in value.list.func)
    return names

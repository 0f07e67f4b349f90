"""What depends on no input in a TensorFlow graph, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import tensorflow as tf

from conrepair.formats.networks.stored import StoredParameter, stored_parameter
from conrepair.formats.tensorflow.read.pieces import GraphPieces, data_inputs, operator_of
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.graph.operators import family

HANDED_ON = {"Identity", "ReadVariableOp", "StopGradient", "PreventGradient", "CheckNumerics", "Snapshot"}
_DECLARED = {"VarHandleOp", "ReadVariableOp", "ResourceGather", "ResourceGatherNd"}  # stateful, but don't change
_REARRANGED = {*family("move"), "ExpandDims", "Squeeze"}
_SMALL = 64  # numbers; sizes, axes and the like are fewer


class TensorflowConstants:
    """The constants of a graph.

    Attributes:
        operators: Names of the operators whose results depend on no input, captured tensors included.
    """

    def __init__(
        self, pieces: GraphPieces, order: Sequence[Any], inputs: Sequence[str], variables: Mapping[int, Any]
    ) -> None:
        """Find the constants.

        Args:
            pieces: The graph.
            order: Its operators, each behind those that it reads from.
            inputs: Names of the operators that the inputs stand for.
            variables: By the id of their handle.
        """
        self._pieces = pieces
        self._variables = variables
        self._small: dict[str, Array] = {}
        self.operators = set(pieces.captures)
        for item in order:
            if item.name in inputs or (_is_stateful(item.op) and item.op not in _DECLARED):
                continue
            if all(operator_of(name) in self.operators for name in data_inputs(item)):
                self.operators.add(item.name)

    def __contains__(self, tensor: str) -> bool:
        return operator_of(tensor) in self.operators

    def read_small(self, tensors: Sequence[str], specs: Mapping[str, tuple[Any, Any]]) -> None:
        """Read sizes, axes and the like at once.

        Args:
            tensors: Constants.
            specs: Shape and dtype by tensor.
        """
        wanted = [name for name in dict.fromkeys(tensors) if name in specs and _is_small(*specs[name])]
        if wanted:
            results = self._pieces.function({}, wanted)()
            self._small = {name: np.asarray(result) for name, result in zip(wanted, results, strict=True)}

    def numbers(self, tensor: str) -> Array:
        """Of a constant that says how an operator works.

        Raises:
            ValueError: if it's none, or large.
        """
        if tensor not in self._small:
            raise ValueError(f"{tensor} is no constant")
        return self._small[tensor]

    def parameter(
        self, tensor: str, shape: Any, dtype: Any, arrange: Callable[[Array], Array] | None = None
    ) -> StoredParameter:
        """A constant as a parameter.

        Args:
            tensor: The constant.
            shape: Of it, as `tf.TensorShape`.
            dtype: Of it; of a variable's handle, that of the variable.
            arrange: Brings the numbers into the vocabulary's convention.

        Raises:
            ValueError: if its shape isn't known, or it's no numbers.
        """
        source = self._origin(tensor)
        variable = self._variable(source)
        if variable is not None:
            shape, dtype = (variable.shape, variable.dtype) if dtype == tf.resource else (shape, dtype)
        if dtype in (tf.resource, tf.variant, tf.string) or not shape.is_fully_defined():
            raise ValueError(f"{tensor} can't be a parameter")

        named = self._origin(tensor, HANDED_ON | _REARRANGED)
        variable = self._variable(named)
        name = variable.name.rpartition(":")[0] if variable is not None else operator_of(named)
        sizes = shape.as_list()
        return stored_parameter(name, dtype.name, lambda: [self._read(tensor, dtype)], [sizes], arrange)

    def _origin(self, tensor: str, through: Set[str] = HANDED_ON) -> str:
        """The tensor that others hand on."""
        while operator_of(tensor) in self._pieces.operators:
            item = self._pieces.operators[operator_of(tensor)]
            if item.op not in through:
                break
            tensor = data_inputs(item)[0]
        return tensor

    def _variable(self, tensor: str) -> Any:
        return self._variables.get(id(self._pieces.captures.get(operator_of(tensor))))

    def _read(self, tensor: str, dtype: Any) -> Array:
        source = self._origin(tensor)
        captured = self._pieces.captures.get(operator_of(source))
        if captured is None:
            (result,) = self._pieces.function({}, [tensor])()
        elif captured.dtype == tf.resource:
            result = tf.raw_ops.ReadVariableOp(resource=captured, dtype=dtype)
        else:
            result = captured
        return np.asarray(result)


def _is_small(shape: Any, dtype: Any) -> bool:
    return bool(dtype.is_integer or dtype.is_bool) and shape.is_fully_defined() and shape.num_elements() <= _SMALL


def _is_stateful(op: str) -> bool:
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(op)
    return bool(definition is not None and definition.is_stateful)

"""Operations as operators of TensorFlow: traced in a graph of their own, then put among a file's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from conrepair.editors.lowering import Writer
from conrepair.editors.operation import Operation, Sizes
from conrepair.editors.tensorflow_file import TensorFlowFile
from conrepair.editors.tensorflow_operators import WRITERS
from conrepair.graph.layer_graph import Array
from conrepair.networks.tensorflow_pieces import data_inputs, operator_of

__all__ = ["TensorFlowWriter"]


class TensorFlowWriter(Writer[Any]):
    """Traces operations; values are symbolic tensors, open sizes stay open."""

    channels_last = True

    def __init__(self, file: TensorFlowFile) -> None:
        """Make one.

        Args:
            file: Whose tensors are read.
        """
        self._file = file
        self._graph = tf.Graph()
        self._read: dict[str, Any] = {}

    def shape(self, value: Any) -> Sizes | None:
        """Sizes, None for the batch."""
        return None if value.shape.rank is None else tuple(value.shape.as_list())

    def operand(self, place: str) -> Any:
        """What stands for a tensor of the file."""
        if place not in self._read:
            shape, dtype = self._file.specs[place]
            with self._graph.as_default():
                self._read[place] = tf.compat.v1.placeholder(dtype, shape, f"operand_{len(self._read)}")
        return self._read[place]

    def write(self, operation: Operation, operands: Sequence[Any]) -> Any:
        """One operator; some of the vocabulary's are a few of TensorFlow's."""
        make = WRITERS.get(operation.operator)
        if make is None:
            self.refuse(f"TensorFlow has no {operation.operator}")
        with self._graph.as_default():
            # TensorFlow refuses what doesn't fit with errors of these types.
            try:
                return make(operation, operands)
            except (ValueError, TypeError, KeyError, tf.errors.OpError) as error:
                self.refuse(f"TensorFlow's {operation.operator} refuses: {error}")

    def put_in(self, result: Any, label: str, known: Mapping[str, Array]) -> str:
        """Add what was traced to the file.

        Args:
            result: From `compute`.
            label: Begins the new names.
            known: Numbers by tensors of the file: constants that are the same are read there.

        Returns:
            The tensor of the result.
        """
        with self._graph.as_default():
            result = tf.identity(result, "result")
        places = {f"{tensor.op.name}:0": place for place, tensor in self._read.items()}
        definitions = {item.name: item for item in self._graph.as_graph_def().node}
        wanted, todo = set[str](), [result.op.name]
        while todo:
            name = todo.pop()
            if name not in wanted:
                wanted.add(name)
                todo += [operator_of(source) for source in data_inputs(definitions[name])]
        for operator in self._graph.get_operations():  # each is made behind what it reads
            item = definitions[operator.name]
            if operator.name not in wanted or f"{operator.name}:0" in places:
                continue
            same = _same_constant(item, known)
            if same is not None:
                places[f"{operator.name}:0"] = same
                continue
            sources = [places[name] for name in data_inputs(item)]
            del item.input[:]
            item.input.extend(sources)
            specs = [(tensor.shape, tensor.dtype) for tensor in operator.outputs]
            first = self._file.add(item, f"{label}/{operator.name}", specs)
            places |= {f"{operator.name}:{index}": f"{operator_of(first)}:{index}" for index in range(len(specs))}
        self._file.reshaped = True
        return places[result.name]


def _same_constant(item: Any, known: Mapping[str, Array]) -> str | None:
    if item.op != "Const":
        return None
    array = tf.make_ndarray(item.attr["value"].tensor)
    for place, numbers in known.items():
        if numbers.dtype == array.dtype and numbers.shape == array.shape and np.array_equal(numbers, array):
            return place
    return None

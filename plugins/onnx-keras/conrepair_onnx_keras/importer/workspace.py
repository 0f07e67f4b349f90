"""What all nodes of one import share: names, transposes already written, where named sizes can be measured."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import onnx_ir
import sympy
from keras import ops

from conrepair.ground.runtime.errors import ConversionError
from conrepair.ground.runtime.words import free_name
from conrepair_onnx_keras.importer.values import ImportedTensor, Size, Value, inverse, is_symbolic, known, symbol

if TYPE_CHECKING:
    from conrepair_onnx_keras.importer.node import ImportedNode


class Workspace:
    """Shared by the nodes of one import.

    Args:
        run: Imports the nodes of a subgraph and returns the values of its outputs.
    """

    def __init__(self, run: Callable[[onnx_ir.Graph, Sequence[Value | None]], list[Value]]) -> None:
        self.run = run
        self._names: set[str] = set()
        self._named: set[int] = set()
        self._arranged: dict[tuple[int, tuple[int, ...]], Any] = {}
        self._origins: dict[Any, tuple[Any, int]] = {}
        self._sizes = itertools.count(1)
        self._first: Any = None
        self._kept: list[Any] = []  # keeps the ids in the dictionaries above valid

    def unique(self, name: str) -> str:
        """A name for an input or an output: like the given one, but allowed in Keras, and new."""
        plain = re.sub(r"[^A-Za-z0-9_.\-]", "_", name).strip("_.-") or "node"
        lower = free_name(plain.lower(), self._names, "_")
        self._names.add(lower)
        return plain + lower[len(plain) :]

    def unique_operation(self, name: str) -> str:
        """The same for an operation. Keras on PyTorch can't load a layer with weights that has a dot in its name."""
        return self.unique(name.replace(".", "_"))

    # --- layouts ------------------------------------------------------------------------------------------

    def stored(self, value: Value, order: Sequence[int] | None = None) -> Any:
        """A value as a Keras tensor (or array, for constants) whose axes lie in the given order.

        Args:
            value: What is wanted.
            order: For each of ONNX's axes where it shall lie; default: as ONNX counts.
        """
        order = tuple(range(len(value.shape))) if order is None else tuple(map(int, order))
        if not isinstance(value, ImportedTensor):
            array = self._measured(value) if is_symbolic(value) else value
            if value.ndim > 1 and not value.size and self._first is not None:  # of whose shape files keep the front
                array = self.computed(value).stored
            return array if order == tuple(range(len(order))) else array.transpose(inverse(order))
        if value.order == order:
            return value.stored
        axes = [value.order[axis] for axis in inverse(order)]
        key = id(value.stored), tuple(axes)
        if key not in self._arranged:
            self._arranged[key] = _permuted(value.stored, axes)
            self._kept.append(value.stored)
        return self._arranged[key]

    def broadcastable(self, value: Value, order: Sequence[int]) -> Any:
        """A value with as many axes as `order` has, in that order, so that it broadcasts as ONNX says."""
        rank, missing = len(order), len(order) - len(value.shape)
        if isinstance(value, np.ndarray) and value.size == 1 and not is_symbolic(value) and (missing or not rank):
            # Keras's files keep a number, without its type, of what has no axes: that does for single precision.
            return value.reshape(() if str(value.dtype) in _NUMBERS else (1,))
        if missing and isinstance(value, ImportedTensor):
            if not value.shape or order == tuple(range(rank)):
                return self.stored(value)
            widened = ops.expand_dims(self.stored(value), tuple(range(missing)))
            value = ImportedTensor(widened, tuple(range(rank)), (*[1] * missing, *value.shape))
        elif missing and isinstance(value, np.ndarray):
            value = value.reshape((1,) * missing + value.shape)
        return self.stored(value, order)

    def computed(self, value: Value, dtype: str | None = None) -> ImportedTensor:
        """A value as a tensor that the model computes, as outputs and layers want it, even if it's known now.

        Args:
            value: Is as it stands where it's a tensor already.
            dtype: Of sizes, which are measured as int64.

        Raises:
            ConversionError: if the model has no input, from which Keras lets everything come.
        """
        if isinstance(value, ImportedTensor):
            return value
        if self._first is None:
            raise ConversionError("the model has no inputs; a Keras model needs one.")
        known_now = np.zeros(1, value.dtype) if value.size == 0 else self.stored(value)
        if dtype is not None and str(known_now.dtype) != dtype:
            known_now = ops.cast(known_now, dtype)
        dtype = str(known_now.dtype)
        empty = self._first[(slice(0, 0),) * len(self._first.shape)]
        nothing = ops.sum(ops.zeros_like(empty, dtype="int32"))
        if dtype == "uint64":  # which Keras adds in uint32
            stored = ops.take(known_now[None], nothing, axis=0)
        elif dtype == "bool":
            stored = ops.logical_or(known_now, ops.cast(nothing, dtype))
        else:
            stored = ops.add(known_now, ops.cast(nothing, dtype))
        if value.size == 0:
            stored = ops.broadcast_to(stored, value.shape)
        return ImportedTensor(stored, tuple(range(value.ndim)), value.shape)

    # --- results ------------------------------------------------------------------------------------------

    def wrap(
        self,
        node: ImportedNode,
        stored: Any,
        order: Sequence[int] | None = None,
        shape: Sequence[Size] | None = None,
        index: int = 0,
    ) -> Value:
        """A rule's result as a value: names its operations, finds out its sizes.

        What was computed from constants alone is one.
        """
        order = tuple(range(len(stored.shape))) if order is None else tuple(map(int, order))
        if not keras.backend.is_keras_tensor(stored):
            return np.asarray(stored).transpose(order)
        self._rename(stored, node.name)
        sizes = []
        for axis, place in enumerate(order):
            size = stored.shape[place]
            if size is None:
                given = shape[axis] if shape is not None else None
                size = given if given is not None else self._guess(node, index, axis, len(order))
            sizes.append(size)
        tensor = ImportedTensor(stored, order, tuple(sizes))
        self.remember(tensor)
        return tensor

    def remember(self, tensor: ImportedTensor) -> None:
        """Note where the named sizes of a tensor can be measured."""
        self._first = tensor.stored if self._first is None else self._first
        for axis, size in enumerate(tensor.shape):
            if not known(size):
                self._origins.setdefault(size, (tensor.stored, tensor.order[axis]))

    def _guess(self, node: ImportedNode, index: int, axis: int, rank: int) -> Size:
        """The name of a size that Keras doesn't know: ONNX's inference, else the batch of the only tensor."""
        inferred = node.ir.outputs[index].shape if index < len(node.ir.outputs) else None
        if inferred is not None and len(inferred) == rank:
            size = inferred[axis]
            if isinstance(size, int):
                return size
            if size.value is not None:
                return symbol(str(size.value))
        tensors = [value for value in node.inputs if isinstance(value, ImportedTensor)]
        if axis == 0 and len(tensors) == 1 and tensors[0].rank == rank and not known(tensors[0].shape[0]):
            return tensors[0].shape[0]
        return self.new_size(f"{node.name}:{index}.{axis}")

    def new_size(self, name: str) -> Size:
        """A size that isn't equal to any other, as far as one knows; `name` is for people."""
        return symbol(f"{name}#{next(self._sizes)}")

    def _rename(self, stored: Any, name: str) -> None:
        """Name operations after the node, so that names don't depend on what was imported before."""
        history = stored._keras_history
        operation = history.operation
        if id(operation) in self._named:
            return
        self._named.add(id(operation))
        self._kept.append(operation)
        if not isinstance(operation, keras.Layer):
            operation.name = self.unique_operation(name)
        if operation._inbound_nodes:
            for tensor in operation._inbound_nodes[history.node_index].input_tensors:
                self._rename(tensor, name)

    # --- sizes that only a run knows ----------------------------------------------------------------------

    def ones(self, sizes: Sequence[Size], dtype: str) -> Any:
        """Ones of a shape in which some sizes are only known by name.

        Such a size is taken from a tensor that has it.

        Raises:
            ConversionError: if no tensor has a size in question.
        """
        if dtype == "bool":  # truths can't be multiplied
            return ops.cast(self.ones(sizes, "int32"), dtype)
        result = ops.ones([int(size) if known(size) else 1 for size in sizes], dtype=dtype)
        for axis, size in enumerate(sizes):
            if not known(size):
                row = ops.reshape(self._row(size), [-1 if place == axis else 1 for place in range(len(sizes))])
                result = ops.multiply(result, ops.cast(row, dtype))
        return result

    def _row(self, size: Size) -> Any:
        """Ones, int64, as many as a symbol stands for."""
        if size not in self._origins:
            raise ConversionError(
                f"the size {size} is known only by name, and no tensor has it. Fix it with --input."
            )
        stored, place = self._origins[size]
        index = tuple(slice(None) if axis == place else 0 for axis in range(len(stored.shape)))
        return ops.ones_like(stored[index], dtype="int64")

    def _measured(self, sizes: Any) -> Any:
        """Sizes as an int64 tensor that the model computes."""
        measured = [self._measure(size) for size in sizes.reshape(-1).tolist()]
        if sizes.ndim == 0:
            return measured[0]
        return ops.reshape(ops.stack([ops.cast(size, "int64") for size in measured]), sizes.shape)

    def _measure(self, size: Size) -> Any:
        if known(size):
            return int(size)
        if size in self._origins:
            return ops.sum(self._row(size))
        if isinstance(size, sympy.floor):
            return ops.floor_divide(*map(self._measure, sympy.fraction(sympy.together(size.args[0]))))
        if isinstance(size, sympy.Pow) and size.exp.is_Integer and size.exp > 0:
            return reduce(ops.multiply, [self._measure(size.base)] * int(size.exp))
        function = next((item for kind, item in _FUNCTIONS.items() if isinstance(size, kind)), None)
        if function is not None and all(part.is_integer for part in size.args):
            return reduce(function, map(self._measure, size.args))
        raise ConversionError(f"the size {size} can't be computed at run time. Fix it with --input.")


_NUMBERS = {"bfloat16", "float16", "float32"}
_FUNCTIONS = {sympy.Add: ops.add, sympy.Mul: ops.multiply, sympy.Max: ops.maximum, sympy.Min: ops.minimum}


def _permuted(stored: Any, axes: Sequence[int]) -> Any:
    """Transpose; where only axes of length 1 move, the data stay as they are and a reshape does."""
    shape = [stored.shape[axis] for axis in axes]
    moving = [axis for axis in axes if stored.shape[axis] != 1]
    if moving == sorted(moving) and sum(size is None for size in shape) <= 1:
        return ops.reshape(stored, [-1 if size is None else size for size in shape])
    return ops.transpose(stored, axes)

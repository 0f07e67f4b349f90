"""A SavedModel's signature or a frozen graph as operators that can be changed, its calls inlined."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import tensorflow as tf

from conrepair.formats.editing.operation import NotEditableError
from conrepair.formats.models.model import Model
from conrepair.formats.tensorflow.load.framework import TensorFlowRunnable
from conrepair.formats.tensorflow.read.constants import HANDED_ON
from conrepair.formats.tensorflow.read.inline import inlined
from conrepair.formats.tensorflow.read.pieces import GraphPieces, data_inputs, operator_of
from conrepair.formats.tensorflow.read.specs import declared_specs
from conrepair.ground.data.tensor_spec import TensorSpec, merge_declared
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.words import free_name, natural_order

_BATCH = 2  # to describe a graph for, where the file leaves it open


class TensorFlowFile:
    """A function's operators, with the sizes that the file leaves open.

    Variables stay variables: operators read them through placeholders, as in the file.

    Attributes:
        function: From the file.
        owner: Keeps the variables alive; None for a frozen graph.
        sizes: The inputs, with sizes to describe the network for.
        pieces: The operators; changed in place.
        placeholders: The operators that stand for inputs, by the inputs' names, in their order.
        results: The tensor of each output, by the outputs' names, in their order.
        assigned: New numbers of variables, by the placeholder that stands for their handle.
        reshaped: Whether anything but numbers of variables was changed.
    """

    def __init__(self, model: Model) -> None:
        """Open a model.

        Raises:
            ModelLoadError: if it can't be loaded.
        """
        runnable = TensorFlowRunnable(model)
        self.function, self.owner = runnable.function, runnable.owner
        named = [spec for spec in model.inputs if any(spec.name == item.name for item in runnable.inputs)]
        self.sizes = [_sized(spec) for spec in merge_declared(runnable.inputs, named)]
        self.pieces, results = pieces_of(self.function)
        self._variables = {id(variable.handle): variable for variable in self.function.graph.variables}
        found = {
            item.attr["_user_specified_name"].s.decode() or name: name
            for name, item in self.operators.items()
            if item.op == "Placeholder"
        }
        self.placeholders = {name: found[name] for name in natural_order(found)}
        given = dict(zip(sorted(self.function.structured_outputs), results, strict=True))
        self.results = {name: given[name] for name in natural_order(given)}
        self.assigned: dict[str, Array] = {}
        self._declared: dict[str, Any] = {}
        self.reshaped = False

    @property
    def operators(self) -> dict[str, Any]:
        """NodeDefs by name."""
        return self.pieces.operators

    @property
    def signature(self) -> dict[str, Any]:
        """`tf.TensorSpec`s of the inputs, as the file declares them, by their names."""
        declared = self.function.structured_input_signature[1]
        return {name: self._declared.get(name, declared[name]) for name in self.placeholders}

    def declare(self, name: str, shape: Sequence[int | None]) -> None:
        """Other sizes for an input; None for one that stays as it is."""
        before = self.signature[name]
        sizes = [old if new is None else new for old, new in zip(before.shape.as_list(), shape, strict=True)]
        self._declared[name] = tf.TensorSpec(sizes, before.dtype, name=before.name)
        item = self.operators[self.placeholders[name]]
        item.attr["shape"].shape.CopyFrom(tf.TensorShape(sizes).as_proto())
        for operator in self.operators.values():
            operator.attr.pop("_output_shapes", None)
        self.reshaped = True

    @property
    def feeds(self) -> dict[str, Any]:
        """The same, by the tensors that stand for them."""
        return {f"{self.placeholders[name]}:0": spec for name, spec in self.signature.items()}

    @cached_property
    def specs(self) -> dict[str, tuple[Any, Any]]:
        """Shape and dtype by tensor, open where the file leaves them open; those that are put in are added."""
        return declared_specs(self.pieces, self.feeds, list(self.results.values()))

    def variable(self, tensor: str) -> Any | None:
        """The variable whose handle a tensor is."""
        return self._variables.get(id(self.pieces.captures.get(operator_of(tensor))))

    def variables(self, names: Sequence[str]) -> list[Any]:
        """The variables behind some placeholders, each once."""
        return list({id(item): item for name in names if (item := self.variable(name)) is not None}.values())

    def holds_numbers(self, tensor: str) -> bool:
        """Whether a tensor holds numbers, and isn't a variable's handle or the like."""
        return self.specs[tensor][1] not in {tf.resource, tf.variant, tf.string}

    def numbers(self, tensor: str) -> Array | None:
        """A constant's or a variable's numbers by now; None for what is neither."""
        source = self._chain(tensor)[-1]
        name = operator_of(source)
        if name in self.assigned:
            return self.assigned[name]
        variable = self.variable(source)
        if variable is not None:
            return np.asarray(variable)
        item = self.operators.get(name)
        if item is None:
            captured = self.pieces.captures[name]
            return None if captured.dtype in {tf.resource, tf.variant} else np.asarray(captured)
        if item.op == "Const":
            found: Array = tf.make_ndarray(item.attr["value"].tensor)
            return found
        if self._needs_inputs(tensor):
            return None
        (result,) = self.pieces.function({}, [tensor])()
        return np.asarray(result)

    def set_constant(self, item: Any, position: int, array: Array) -> None:
        """Give an operator other numbers; whoever shares the old ones keeps them.

        Args:
            item: NodeDef.
            position: Among its inputs.
            array: Of the old shape; cast to the old type.

        Raises:
            NotEditableError: if there are no numbers, or they're of another shape.
        """
        tensor = data_inputs(item)[position]
        before = self.numbers(tensor)
        if before is None or before.shape != array.shape:
            held = "computed" if before is None else f"of shape {before.shape}"
            raise NotEditableError(f"{operator_of(tensor)} is {held}, not of shape {array.shape}")
        array = np.asarray(array, before.dtype, order="C")
        chain = self._chain(tensor)
        source = operator_of(chain[-1])
        alone = all(self._uses(place) == 1 for place in chain)
        if alone and self.variable(chain[-1]) is not None:
            self.assigned[source] = array
            return
        self.reshaped = True
        if alone and source in self.operators and self.operators[source].op == "Const":
            self.operators[source].attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
        elif self.specs[tensor][1] == tf.resource:
            item.input[position] = self.add_variable(array, f"{item.name}/{source}")
        else:
            item.input[position] = self.add_constant(array, f"{item.name}/{source}")

    def add_constant(self, array: Array, label: str) -> str:
        """A new constant; its tensor."""
        item = tf.compat.v1.NodeDef(op="Const")
        proto = tf.make_tensor_proto(array)
        item.attr["dtype"].type = proto.dtype
        item.attr["value"].tensor.CopyFrom(proto)
        return self.add(item, label, [(tf.TensorShape(array.shape), tf.as_dtype(proto.dtype))])

    def add_variable(self, array: Array, label: str) -> str:
        """A new variable; the tensor of its handle."""
        variable = tf.Variable(array)
        name = self.free_name(label)
        self.pieces.captures[name] = variable.handle
        self._variables[id(variable.handle)] = variable
        self.specs[f"{name}:0"] = (tf.TensorShape(()), tf.resource)
        return f"{name}:0"

    def add(self, item: Any, label: str, specs: Sequence[tuple[Any, Any]]) -> str:
        """A new operator.

        Args:
            item: NodeDef; it gets its name.
            label: For that.
            specs: Shapes and dtypes of its results.

        Returns:
            Its first result.
        """
        known = self.specs
        item.name = self.free_name(label)
        self.operators[item.name] = item
        known |= {f"{item.name}:{index}": spec for index, spec in enumerate(specs)}
        return f"{item.name}:0"

    def free_name(self, label: str) -> str:
        """A name that nothing has."""
        return free_name(label, ChainMap(self.operators, self.pieces.captures), "_")

    def readers(self, tensor: str) -> list[Any]:
        """The operators that read a tensor, of those that the results need."""
        return [item for item in self._needed() if tensor in data_inputs(item)]

    def redirect(self, items: Sequence[Any], instead: Mapping[str, str]) -> None:
        """Let operators, each named once, read other tensors in place of some."""
        for item in items:
            item.input[:] = [instead.get(name, name) for name in data_inputs(item)]
        self.reshaped = True

    def replace_output(self, old: str, new: str) -> None:
        """Let the function give another tensor under the same name.

        Raises:
            NotEditableError: if that would be an input.
        """
        for name, place in self.results.items():
            if place == old:
                if operator_of(new) in self.placeholders.values():
                    raise NotEditableError("nothing would be left between input and output")
                self.results[name] = new

    def check_order(self, tensor: str) -> None:
        """Make sure that the graph has no cycle.

        Raises:
            NotEditableError: if something is; it names the tensor.
        """
        reads = {item.name: [operator_of(name) for name in data_inputs(item)] for item in self._needed()}
        try:
            TopologicalSorter(reads).prepare()
        except CycleError as error:
            message = f"what is put in place of {tensor} would read what is computed from it"
            raise NotEditableError(message) from error

    def needed(self) -> Any:
        """The operators and captures that the results need."""
        return self.pieces.needed({}, self.results.values())

    def _needed(self) -> list[Any]:
        found: list[Any] = self.needed().operators
        return found

    def _uses(self, tensor: str) -> int:
        used = sum(data_inputs(item).count(tensor) for item in self._needed())
        return used + list(self.results.values()).count(tensor)

    def _chain(self, tensor: str) -> list[str]:
        """The tensor, and those that it's handed on from."""
        chain = [tensor]
        while (item := self.operators.get(operator_of(chain[-1]))) is not None and item.op in HANDED_ON:
            chain.append(data_inputs(item)[0])
        return chain

    def _needs_inputs(self, tensor: str) -> bool:
        inputs = set(self.placeholders.values())
        return any(item.name in inputs for item in self.pieces.needed({}, [tensor]).operators)


def pieces_of(function: Any) -> tuple[GraphPieces, list[str]]:
    """A function's operators, its calls inlined, and the tensor of each of its outputs."""
    definition = function.graph.as_graph_def()
    operators, results = inlined(definition, [tensor.name for tensor in function.graph.outputs])
    captures = {placeholder.op.name: external for external, placeholder in function.graph.captures}
    return GraphPieces(operators, captures, definition), results


def _sized(spec: TensorSpec) -> TensorSpec:
    shape = [_BATCH if axis == 0 and isinstance(size, str) else size for axis, size in enumerate(spec.shape)]
    if any(isinstance(size, str) for size in shape):
        raise NotEditableError(
            f"the input {spec.name} has open sizes besides its batch ({list(spec.shape)}). "
            "Declare its shape (`inputs` of the model in a configuration)."
        )
    return replace(spec, shape=tuple(shape))

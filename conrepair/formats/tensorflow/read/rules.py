"""An operator of a TensorFlow graph as its rules see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from conrepair.formats.networks.parts import LayerPart, Shape, depthwise_weight, out_in_kernel
from conrepair.formats.networks.stored import StoredParameter
from conrepair.formats.tensorflow.read.constants import TensorflowConstants
from conrepair.formats.tensorflow.read.view import TensorflowView
from conrepair.ground.graph.layer_graph import Array, Attribute, Parameter


@dataclass(frozen=True)
class TensorflowOperation(TensorflowView):
    """One operator.

    Attributes:
        definition: NodeDef.
        inputs: What it reads, constants too.
        outputs: What's read of what it gives.
        constants: Of the graph.
        specs: Shape and type by tensor.
    """

    definition: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: TensorflowConstants
    specs: Mapping[str, tuple[Any, Any]]

    def has(self, position: int) -> bool:
        """Whether an input is there."""
        return position < len(self.inputs)

    def is_constant(self, position: int) -> bool:
        """Whether an input is there and doesn't depend on the network's inputs."""
        return self.has(position) and self.inputs[position] in self.constants

    def shape(self, position: int) -> Shape:
        """Of an input."""
        return self._sizes(self.inputs[position])

    def result(self, position: int = 0) -> Shape:
        """Shape of an output that's read."""
        return self._sizes(self.outputs[position]) if position < len(self.outputs) else None

    def _sizes(self, tensor: str) -> Shape:
        shape = self.specs[tensor][0] if tensor in self.specs else None
        return tuple(shape.as_list()) if shape is not None and shape.is_fully_defined() else None

    def channels(self) -> int:
        """By the first input's static shape."""
        return int(self.specs[self.inputs[0]][0][-1 if self.channels_last else 1])

    def numbers(self, position: int) -> tuple[int, ...]:
        """A small constant of whole numbers."""
        return tuple(map(int, self.constants.numbers(self.inputs[position]).ravel()))

    def parameter(self, position: int, arrange: Callable[[Array], Array] | None = None) -> StoredParameter:
        """An input that's a constant, or a variable; its position is what holds it."""
        if not self.is_constant(position):
            raise ValueError("no constant")
        tensor = self.inputs[position]
        return replace(self.constants.parameter(tensor, *self.specs[tensor], arrange), holders=(position,))

    def weight(self) -> Parameter:
        """The kernel behind the first input."""
        return self.parameter(1, depthwise_weight if self.definition.op.startswith("Depthwise") else out_in_kernel)

    def option(self, name: str) -> Any:
        """An attribute as Python's values; types by name."""
        if name not in self.definition.attr:
            raise KeyError(name)
        value = self.definition.attr[name]
        kind = value.WhichOneof("value")
        if kind == "list":
            items = value.list
            return tuple(items.i) or tuple(items.f) or tuple(items.b) or tuple(item.decode() for item in items.s)
        if kind == "s":
            return value.s.decode(errors="replace")
        return tf.as_dtype(value.type).name if kind == "type" else getattr(value, kind)

    @property
    def channels_last(self) -> bool:
        """Whether the operator's channels are its tensors' last axis."""
        format_ = self.option("data_format") if "data_format" in self.definition.attr else "NHWC"
        return bool(str(format_).endswith("C"))


def native_part(operation: TensorflowOperation, op: str) -> LayerPart:
    """An operator that the vocabulary has no word for, with its settings and constants."""
    attributes: dict[str, Attribute] = {}
    for name in operation.definition.attr:
        kind = operation.definition.attr[name].WhichOneof("value")
        if not name.startswith("_") and kind in {"i", "f", "b", "s", "type", "list"}:
            value = operation.option(name)
            if value != ():
                attributes[name] = value
    parameters: dict[str, Parameter] = {}
    for index in range(len(operation.inputs)):
        if operation.is_constant(index):
            # Tables and random states are no numbers.
            with suppress(ValueError):
                parameters[f"input_{index}"] = operation.parameter(index)
    return LayerPart(op, attributes, parameters, operation.channels_last)

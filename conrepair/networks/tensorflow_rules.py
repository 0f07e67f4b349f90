"""An operator of TensorFlow as its rules see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from conrepair.graph.layer_graph import Array, Attribute, Parameter
from conrepair.networks.parts import LayerPart, Shape
from conrepair.networks.tensorflow_constants import TensorflowConstants

__all__ = ["Rule", "TensorflowOperation", "binary", "native_part"]


@dataclass(frozen=True)
class TensorflowOperation:
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

    def is_tensor(self, index: int) -> bool:
        """Whether an input depends on the network's inputs."""
        return self.inputs[index] not in self.constants

    def shape(self, index: int) -> Shape:
        """Of an input."""
        return self._sizes(self.inputs[index])

    def sizes(self, index: int) -> tuple[int, ...]:
        """The same.

        Raises:
            ValueError: if it isn't known; the operator is then left as it is.
        """
        shape = self.shape(index)
        if shape is None:
            raise ValueError("a shape isn't known")
        return shape

    def result(self, index: int = 0) -> Shape:
        """Shape of an output that's read."""
        return self._sizes(self.outputs[index])

    def result_sizes(self) -> tuple[int, ...]:
        """Shape of the first output.

        Raises:
            ValueError: if it isn't known.
        """
        shape = self.result()
        if shape is None:
            raise ValueError("a shape isn't known")
        return shape

    def _sizes(self, tensor: str) -> Shape:
        shape = self.specs[tensor][0] if tensor in self.specs else None
        return tuple(shape.as_list()) if shape is not None and shape.is_fully_defined() else None

    def numbers(self, index: int) -> tuple[int, ...]:
        """An input that says how the operator works.

        Raises:
            ValueError: if it's no small constant of whole numbers.
        """
        return tuple(map(int, self.constants.numbers(self.inputs[index]).ravel()))

    def axes(self, index: int, rank: int) -> tuple[int, ...]:
        """The same, counted from 0."""
        return tuple(sorted(axis % rank for axis in self.numbers(index)))

    def parameter(self, index: int, arrange: Callable[[Array], Array] | None = None) -> Parameter:
        """An input that's a constant.

        Raises:
            ValueError: if it's none.
        """
        if self.is_tensor(index):
            raise ValueError("no constant")
        tensor = self.inputs[index]
        return self.constants.parameter(tensor, *self.specs[tensor], arrange)

    def attribute(self, name: str) -> Any:
        """As Python's values; types by name.

        Raises:
            KeyError: if the operator doesn't have it.
        """
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
        format_ = self.attribute("data_format") if "data_format" in self.definition.attr else "NHWC"
        return bool(str(format_).endswith("C"))


Rule = Callable[[TensorflowOperation], list[LayerPart]]


def binary(op: str, *, commutes: bool) -> Rule:
    """An elementwise operator of two."""

    def rule(operation: TensorflowOperation) -> list[LayerPart]:
        if operation.is_tensor(0) and operation.is_tensor(1):
            return [LayerPart(op, {"constant_first": False})]
        first = not operation.is_tensor(0)
        operand = operation.parameter(0 if first else 1)
        return [LayerPart(op, {"constant_first": first and not commutes}, {"operand": operand})]

    return rule


def native_part(operation: TensorflowOperation, op: str) -> LayerPart:
    """An operator that the vocabulary has no word for, with its settings and constants."""
    attributes: dict[str, Attribute] = {}
    for name in operation.definition.attr:
        kind = operation.definition.attr[name].WhichOneof("value")
        if not name.startswith("_") and kind in {"i", "f", "b", "s", "type", "list"}:
            value = operation.attribute(name)
            if value != ():
                attributes[name] = value
    parameters: dict[str, Parameter] = {}
    for index in range(len(operation.inputs)):
        if not operation.is_tensor(index):
            # Tables and random states are no numbers.
            try:
                parameters[f"input_{index}"] = operation.parameter(index)
            except ValueError:
                continue
    return LayerPart(op, attributes, parameters, operation.channels_last)

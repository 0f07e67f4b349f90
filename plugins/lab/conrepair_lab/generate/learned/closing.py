"""Nodes put around an operator so that only tensors of numbers go in and out.

A sequence is made of tensors in front of it and taken apart behind it, an optional likewise; strings are constants,
of which an index chooses; numbers of few bits are cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from conrepair_lab.generate.settings.tensors import BOOL, FLOATS, INTEGERS

Array = np.ndarray[Any, Any]


@dataclass
class Closing:
    """A graph under completion: nodes around an operator make its inputs and outputs tensors of numbers.

    Attributes:
        nodes: In order.
        constants: Of its own.
        feeds: What its inputs were, by name.
        outputs: Names of its outputs.
    """

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)

    def take(self, name: str, kind: onnx.TypeProto, value: Any) -> None:
        """Add an input, with the nodes that make the operator's own input of it.

        Args:
            name: That nodes know it by.
            kind: Its type.
            value: An array, a list of values, or None for nothing.
        """
        if kind.HasField("optional_type"):
            inner = kind.optional_type.elem_type
            if value is None:
                self.nodes.append(helper.make_node("Optional", [], [name], type=inner))
                return
            self.take(f"{name}_given", inner, value)
            self.nodes.append(helper.make_node("Optional", [f"{name}_given"], [name]))
        elif kind.HasField("sequence_type"):
            self._sequence(name, kind.sequence_type.elem_type, value)
        else:
            self._tensor(name, kind.tensor_type.elem_type, np.asarray(value))

    def give(self, name: str, value: Any) -> None:
        """Add outputs, with the nodes that make tensors of numbers of the operator's own outputs.

        Args:
            name: That the node makes it by.
            value: An array, a list of values, or None for nothing.
        """
        if isinstance(value, list):
            self._node("SequenceLength", [name], f"{name}_length")
            self.outputs.append(f"{name}_length")
            if value:
                self._node("SequenceAt", [name, self._constant(f"{name}_last", np.array(-1))], f"{name}_item")
                self.give(f"{name}_item", value[-1])
        elif value is None:
            self._node("OptionalHasElement", [name], f"{name}_is_there")
            self.outputs.append(f"{name}_is_there")
        elif value.dtype.kind in "OUST":
            known = self._constant(f"{name}_known", value.astype(object))
            self._node("Equal", [name, known], f"{name}_same")
            self.outputs.append(f"{name}_same")
        elif value.dtype.name in FLOATS + INTEGERS + BOOL:
            self.outputs.append(name)
        else:
            self._node("Cast", [name], f"{name}_wide", to=TensorProto.FLOAT)
            self.outputs.append(f"{name}_wide")

    def _sequence(self, name: str, kind: onnx.TypeProto, values: Sequence[Any]) -> None:
        names = [f"{name}_{place}" for place in range(len(values))]
        for own, value in zip(names, values, strict=True):
            self.take(own, kind, value)
        if names:
            self._node("SequenceConstruct", names, name)
        else:
            self._node("SequenceEmpty", [], name, dtype=kind.tensor_type.elem_type)

    def _tensor(self, name: str, number: int, value: Array) -> None:
        if number == TensorProto.STRING:
            every = self._constant(f"{name}_every", value.ravel().astype(object))
            self.feeds[f"{name}_which"] = np.arange(value.size).reshape(value.shape)
            self._node("Gather", [every, f"{name}_which"], name)
        elif value.dtype.name in FLOATS + INTEGERS + BOOL:
            self.feeds[name] = value
        else:
            self.feeds[f"{name}_wide"] = value.astype(np.float32)
            self._node("Cast", [f"{name}_wide"], name, to=number)

    def _constant(self, name: str, value: Array) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def _node(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> None:
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))

"""Graphs inside of nodes: what branches and loops compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import helper

from conrepair.generate.tensors import element_type

__all__ = ["Body", "BodyStep"]


@dataclass(frozen=True)
class BodyStep:
    """An operator in a body; it makes one tensor.

    Attributes:
        op: Its name.
        inputs: Numbers of the tensors that it reads.
        attributes: Those that are said.
    """

    op: str
    inputs: tuple[int, ...]
    attributes: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Body:
    """A graph of which the tensors are numbered: its inputs, those from outside, then what each step makes.

    Attributes:
        inputs: Element type and number of axes of each.
        outer: How many tensors from outside it may read; they're the last inputs of the node that it's in.
        steps: In the order in which they're computed.
        outputs: Numbers of tensors, each made by a step of its own.
    """

    inputs: tuple[tuple[str, int], ...]
    outer: int
    steps: tuple[BodyStep, ...]
    outputs: tuple[int, ...]

    def graph(self, name: str, outer: Sequence[str]) -> onnx.GraphProto:
        """The graph of ONNX; sizes, and types of what it makes, are inferred.

        Args:
            name: Of the graph; all tensors' names begin with it.
            outer: Names of the tensors from outside.
        """
        count = len(self.inputs)
        own = [f"{name}_{number}" for number in range(count + len(self.steps))]
        names = [*own[:count], *outer, *own[count:]]
        nodes = [
            helper.make_node(
                step.op, [names[number] for number in step.inputs], [made], made, **dict(step.attributes)
            )
            for step, made in zip(self.steps, own[count:], strict=True)
        ]
        inputs = [
            helper.make_tensor_value_info(text, element_type(dtype), [None] * rank)
            for text, (dtype, rank) in zip(own, self.inputs, strict=False)
        ]
        outputs = [onnx.ValueInfoProto(name=names[number]) for number in self.outputs]
        return helper.make_graph(nodes, name, inputs, outputs)

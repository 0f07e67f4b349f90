"""Graphs inside of nodes: what branches and loops compute, of operators that keep shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

import onnx
from onnx import helper

from conrepair_lab.generate.settings.domains import Domain
from conrepair_lab.generate.settings.drawing import Drawing, Source
from conrepair_lab.generate.settings.expressions import known
from conrepair_lab.generate.settings.ports import NotAllowedError, Operand, Port
from conrepair_lab.generate.settings.reading import Reading
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.tensors import TensorType, element_type
from conrepair_lab.generate.specifications.specification import specifications, spoken


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


_FAMILY = "elementwise"
_STEPS = 3
_TRIES = 8


@dataclass(frozen=True)
class Bodies(Domain):
    """Bodies of a node.

    Attributes:
        node: That they're in.
        inputs: Types of what they're given.
        outer: Types of what they may read from outside.
        outputs: Types of what they must make; None for any of those that they're given, a number for an input that
            must be handed through.
    """

    node: Setting
    inputs: Sequence[TensorType]
    outputs: Sequence[TensorType | int | None]
    outer: Sequence[TensorType] = ()

    def drawn(self, random: Random) -> Body:
        types = [_sized(made, place) for place, made in enumerate((*self.inputs, *self.outer))]
        given = len(types)
        steps: list[BodyStep] = []
        for _ in range(random.randint(1, _STEPS)):
            for step, made in self._steps(types, random):
                steps.append(step)
                types.append(made)
        outputs: list[int] = []
        for wanted in self.outputs:
            number = self._output(wanted, types, given, random)
            if number < given or number in outputs:
                steps.append(BodyStep("Identity", (number,)))
                types.append(types[number])
                number = len(types) - 1
            outputs.append(number)
        return Body(self._given(), len(self.outer), tuple(steps), tuple(outputs))

    def allows(self, value: Any) -> bool:
        if not isinstance(value, Body) or (value.inputs, value.outer) != (self._given(), len(self.outer)):
            return False
        try:
            made = self.types(value)
        except NotAllowedError:
            return False
        return len(made) == len(self.outputs) and all(
            _handed_through(value, place, wanted) if isinstance(wanted, int) else wanted in (None, made[place])
            for place, wanted in enumerate(self.outputs)
        )

    def _given(self) -> tuple[tuple[str, int], ...]:
        return tuple((made.dtype, made.rank) for made in self.inputs)

    def types(self, body: Body) -> list[TensorType]:
        """The types of the body's outputs.

        Raises:
            NotAllowedError: if a specification forbids one of its steps.
        """
        given = (*self.inputs, *self.outer)
        types = [_sized(made, place) for place, made in enumerate(given)]
        shapes = {made.shape: own.shape for made, own in zip(types, given, strict=True)}
        for step in body.steps:
            setting = Reading(
                step.op,
                self.node.opset,
                self.node.random,
                self.node.support,
                given=[Operand(types[number]) for number in step.inputs],
                said=dict(step.attributes),
                results=[True],
            )
            types.append(_result(setting))
        made = [types[number] for number in body.outputs]
        return [TensorType(item.dtype, shapes.get(item.shape, item.shape)) for item in made]

    def _steps(self, types: Sequence[TensorType], random: Random) -> Iterator[tuple[BodyStep, TensorType]]:
        names = [name for name, item in specifications().items() if _fits(item, self.node.opset)]
        for _ in range(_TRIES):
            op = random.choice(names)
            setting = Drawing(op, self.node.opset, random, self.node.support, source=_Within(types))
            with suppress(NotAllowedError):
                made = _result(setting)
                read = [operand.name for operand in setting.inputs if operand is not None and operand.name]
                if len(read) == len(setting.inputs) and self.node.support.allows(setting):
                    yield BodyStep(op, tuple(map(int, read)), tuple(setting.attributes.items())), made
                    return

    def _output(self, wanted: TensorType | int | None, types: list[TensorType], given: int, random: Random) -> int:
        if isinstance(wanted, int):
            return wanted
        own = types[:given]
        if wanted is not None:
            wanted = next(
                made
                for made, real in zip(own, (*self.inputs, *self.outer), strict=True)
                if (real.dtype == wanted.dtype and real.shape is wanted.shape)
                or (all(map(known, wanted.shape)) and made == wanted)
            )
        fitting = [number for number, made in enumerate(types) if (made in own if wanted is None else made == wanted)]
        made = [number for number in fitting if number >= given]
        return random.choice(made or fitting)


class _Within(Source):
    """A source of the tensors that a body has already."""

    def __init__(self, types: Sequence[TensorType]) -> None:
        self._types = types

    def take(self, port: Port, random: Random) -> Operand:
        fitting = [
            number
            for number, made in enumerate(self._types)
            if made.dtype in port.dtypes and port.pattern.allows(made.shape)
        ]
        if not fitting or port.values is not None or port.domain is not None:
            raise NotAllowedError("nothing in the body fits")
        number = random.choice(fitting)
        return Operand(self._types[number], name=str(number), port=port)


def _result(setting: Setting) -> TensorType:
    made = spoken(setting).outputs[0]
    if len(setting.outputs) != 1 or made is None or not made.sized:
        raise NotAllowedError("not one output whose sizes are known")
    return made


def _fits(item: Any, opset: int) -> bool:
    return item.family == _FAMILY and item.least_opset <= opset and "::" not in item.op


def _sized(made: TensorType, place: int) -> TensorType:
    """A type in place of one whose sizes aren't known yet: of sizes that no other has."""
    if all(map(known, made.shape)):
        return made
    return TensorType(made.dtype, tuple(1009 + 10 * place + axis for axis in range(made.rank)))


def _handed_through(body: Body, place: int, wanted: int) -> bool:
    step = body.steps[body.outputs[place] - len(body.inputs) - body.outer]
    return step.op == "Identity" and step.inputs == (wanted,)

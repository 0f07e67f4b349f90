"""A piece of a model as a draft: what specifications know is a usual node, all else is placed as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import helper

from conrepair.formats.onnx.load.proto_file import inner_graphs, read_by
from conrepair.ground.metrics.ulps import is_real
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.pieces import Piece, operator_of
from conrepair_lab.generate.real.opened import OpenedFile, Unit
from conrepair_lab.generate.settings.ports import NotAllowedError, Operand, Support
from conrepair_lab.generate.settings.reading import Reading
from conrepair_lab.generate.settings.tensors import BOOL, NUMERIC, Range, TensorType, element_type
from conrepair_lab.generate.specifications.specification import specifications

Array = np.ndarray[Any, Any]

ORIGIN = "real"
"""Of nodes that are from a model."""

_SMALL = 8
"""Elements that a constant of real numbers has at most; more are weights."""

_WHOLE = 4096
"""Elements that a constant of whole numbers has at most."""


@dataclass
class Base:
    """A network that others are grown from.

    Attributes:
        draft: The network.
        values: Of inputs and weights: the model's own, and what it computed.
        weights: Names of those that are the model's own.
    """

    draft: Draft
    values: dict[str, Array] = field(default_factory=dict)
    weights: set[str] = field(default_factory=set)


def drafted(model: OpenedFile, units: Sequence[Unit], random: Random, support: Support) -> Base:
    """Make a draft of some units of a model.

    Args:
        model: That they're from.
        units: In order.
        random: What specifications ask for comes from here.
        support: Element types that a runtime takes.
    """
    drafting = _Drafting(model, Base(Draft(model.opset)), random, support)
    for unit in units:
        drafting.add(unit)
    return drafting.base


@dataclass
class _Drafting:
    model: OpenedFile
    base: Base
    random: Random
    support: Support
    names: dict[str, str] = field(default_factory=dict)

    def add(self, unit: Unit) -> None:
        try:
            self._usual(unit)
        except NotAllowedError:
            self._as_it_is(unit)

    def _usual(self, unit: Unit) -> None:
        """Add a node as its specification has it.

        Raises:
            NotAllowedError: if that doesn't know or allow it, or says that something else is made.
        """
        node, draft = unit.nodes[0], self.base.draft
        op = operator_of(node)
        found = specifications().get(op)
        known = found is not None and len(unit.nodes) == 1 and found.least_opset <= draft.opset
        if found is None or not known or any(inner_graphs(node)) or not self._numbers(node):
            raise NotAllowedError("no specification speaks of it")
        said = {item.name: _plain(helper.get_attribute_value(item)) for item in node.attribute}
        setting = Reading(
            op,
            draft.opset,
            self.random,
            self.support,
            given=[self._operand(name) for name in _trimmed(node.input)],
            said=said,
            results=[bool(name) for name in _trimmed(node.output)],
        )
        found.body(setting)
        if len(setting.inputs) != len(setting.given) or len(setting.outputs) != len(setting.results):
            raise NotAllowedError("another number of inputs or outputs")
        for name, made in zip(node.output, setting.outputs, strict=False):
            if name and (made is None or not made.describes(*_described(self.model.values[name]))):
                raise NotAllowedError("something else is made")
        for operand in setting.inputs:
            self._check(operand)
        for operand, own in zip(setting.inputs, node.input, strict=False):
            self._connect(operand, own)
        setting.attributes = said
        setting.inputs = [
            None if operand is None else Operand(operand.type, name=self.names[own], array=operand.array)
            for operand, own in zip(setting.inputs, node.input, strict=False)
        ]
        added = draft.add(setting, origin=ORIGIN)
        self.names.update({own: name for own, name in zip(node.output, added.outputs, strict=False) if own})

    def _as_it_is(self, unit: Unit) -> None:
        constants = dict.fromkeys(
            name for node in unit.nodes for name in read_by(node) if name in self.model.constants
        )
        graph = helper.make_graph(
            unit.nodes,
            "piece",
            [self._info(name) for name in unit.reads],
            [self._info(name) for name in unit.makes],
            [self.model.constants[name] for name in constants],
        )
        inputs = [self._tensor(name) for name in unit.reads]
        added = self.base.draft.place(Piece(unit.op, graph), inputs, ORIGIN)
        self.names.update(zip(unit.makes, added.outputs, strict=True))

    def _numbers(self, node: onnx.NodeProto) -> bool:
        """Whether a node reads tensors of numbers alone."""
        constants = [self.model.constant(name) for name in node.input if name in self.model.constants]
        return all(array.dtype.name in NUMERIC + BOOL for array in constants)

    def _operand(self, own: str) -> Operand | None:
        """A tensor that there is, or will be; it isn't connected yet."""
        if not own:
            return None
        if own in self.names:
            tensor = self.base.draft.tensors[self.names[own]]
            return Operand(tensor.type, name=own, array=tensor.value)
        array = self._array(own)
        constant = own in self.model.constants and not _weight(array)
        return Operand(TensorType(*_described(array)), name=own, array=array if constant else None)

    def _check(self, operand: Operand | None) -> None:
        """Refuse values outside of what the operator takes."""
        if operand is None or operand.port is None or operand.port.values is None or operand.array is not None:
            return
        seen = self._array(operand.name or "")
        if not operand.port.values.allows(seen):
            raise NotAllowedError("other values were seen")

    def _connect(self, operand: Operand | None, own: str) -> None:
        if operand is None:
            return
        tensor = self.base.draft.tensors[self._tensor(own)]
        if operand.port is not None and tensor.name in self.base.draft.sources:
            tensor.values = operand.port.values or tensor.values
            tensor.wish = operand.port.domain or tensor.wish

    def _tensor(self, own: str) -> str:
        """The name in the draft of a tensor of the model; what nothing has made yet is a constant, or a source."""
        if own not in self.names:
            draft, array = self.base.draft, self._array(own)
            if own in self.model.constants and not _weight(array):
                tensor = draft.constant(array)
            else:
                tensor = draft.source(TensorType(*_described(array)), _whole_range(array))
                self.base.values[tensor.name] = array
                if own in self.model.constants:
                    self.base.weights.add(tensor.name)
            self.names[own] = tensor.name
        return self.names[own]

    def _array(self, own: str) -> Array:
        return self.model.values[own] if own in self.model.values else self.model.constant(own)

    def _info(self, own: str) -> onnx.ValueInfoProto:
        dtype, shape = _described(self.model.values[own])
        return helper.make_tensor_value_info(own, element_type(dtype), shape)


def _weight(array: Array) -> bool:
    return array.size > (_SMALL if is_real(array) else _WHOLE)


def _whole_range(array: Array) -> Range | None:
    """Whole numbers keep to what was seen."""
    if array.dtype.kind not in "iu":
        return None
    return Range(int(array.min()), int(array.max())) if array.size else Range(0, 0)


def _described(array: Array) -> tuple[str, tuple[int, ...]]:
    return array.dtype.name, array.shape


def _trimmed(names: Sequence[str]) -> list[str]:
    """Without what is left out at the end."""
    found = list(names)
    while found and not found[-1]:
        found.pop()
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return tuple(map(_plain, value)) if isinstance(value, list) else value

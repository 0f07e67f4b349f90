"""A setting that is there already: whether a specification allows it, and which outputs it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx

from conrepair_lab.generate.settings.domains import Domain
from conrepair_lab.generate.settings.ports import NotAllowedError, Operand, Port
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.tensors import value_in


@dataclass(kw_only=True)
class Reading(Setting):
    """A setting of which all is given.

    Attributes:
        given: Inputs, in the schema's order; None for those that are left out.
        said: Attributes that the node has.
        results: Which outputs it has.
    """

    given: Sequence[Operand | None]
    said: Mapping[str, Any]
    results: Sequence[bool]

    def _has(self, name: str) -> bool:
        if name in self.schema.attributes:
            return name in self.said
        if name in self.schema.places:
            return self._at(self.schema.places[name]) is not None
        place = next(place for place, formal in enumerate(self.schema.outputs) if formal.name == name)
        return place < len(self.results) and self.results[place]

    def forbid(self, name: str, why: str) -> None:
        self.require(not self.has(name), why)

    def rank_of(self, name: str, ranks: Sequence[int]) -> int:
        operand = self._at(self._place(self._formal_input(name)))
        self.require(operand is not None and operand.type.rank in ranks, f"{name} has another rank")
        return 0 if operand is None else operand.type.rank

    def count(self, low: int, high: int, name: str = "") -> int:
        before = max(len(self.inputs), self._place(self.schema.inputs[-1]))
        number = len(self.results) - len(self.outputs) if name else len(self.given) - before
        self.require(low <= number, "too few")
        return number

    def length(self, name: str, low: int, high: int, usual: int | None = None) -> int:
        if name in self.schema.attributes:
            number = len(self.said[name]) if name in self.said else -1
        else:
            operand = self._at(self._place(self._formal_input(name)))
            number = -1 if operand is None or operand.type.rank != 1 else operand.type.shape[0]
        self.require(low <= number <= high, f"{name} has another length")
        return number

    def size_of(self, name: str, axis: int, low: int, high: int) -> int:
        operand = self._at(self._place(self._formal_input(name)))
        shape = () if operand is None else operand.type.shape
        if not -len(shape) <= axis < len(shape):
            raise NotAllowedError(f"{name} has another shape")
        self.require(low <= shape[axis] <= high, f"{name} has another shape")
        return int(shape[axis])

    def _taken(self, port: Port) -> Operand:
        place = self._place(self._formal_input(port.name)) if port.name else len(self.inputs)
        operand = self._at(place)
        if operand is None:
            raise NotAllowedError(f"{port.name or 'a tensor from outside'} is missing")
        self.require(operand.type.dtype in port.dtypes, f"{port.name} has another element type")
        self.require(port.pattern.allows(operand.type.shape), f"{port.name} has another shape")
        if port.values is not None and operand.array is not None:
            self.require(port.values.allows(operand.array), f"{port.name} has other values")
        return replace(operand, port=port)

    def _at(self, place: int) -> Operand | None:
        return self.given[place] if place < len(self.given) else None

    def _value(self, name: str, domain: Domain) -> Any:
        if name in self.said:
            value = self.said[name]
        else:
            default = self.schema.attributes[name].default_value
            self.require(bool(default.name), f"{name} is missing")
            value = onnx.helper.get_attribute_value(default)
        if isinstance(value, bytes):
            value = value.decode()
        if isinstance(value, list):
            value = tuple(value)
        self.require(domain.allows(value), f"{name} has another value")
        self.attributes[name] = value
        return value

    def _constant(self, name: str, domain: Domain, dtypes: tuple[str, ...]) -> Any:
        formal = self._formal_input(name)
        place = self._place(formal)
        operand = self._at(place)
        if operand is None or operand.array is None:
            raise NotAllowedError(f"{name} is not a constant")
        self.require(operand.type.dtype in dtypes, f"{name} has another element type")
        value = value_in(operand.array)
        self.require(domain.allows(value), f"{name} has other values")
        self._put(formal, operand)
        return value

"""A setting that is there already, in which one value is drawn anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from conrepair.generate.domains import Domain
from conrepair.generate.drawing import drawn
from conrepair.generate.ports import NotAllowedError
from conrepair.generate.reading import Reading
from conrepair.generate.tensors import numpy_type

__all__ = ["Redrawing"]

_GRAPHS = {onnx.defs.OpSchema.AttrType.GRAPH, onnx.defs.OpSchema.AttrType.GRAPHS}


@dataclass(kw_only=True)
class Redrawing(Reading):
    """A setting of which all is given, but for one attribute, or one input that's constant.

    Attributes:
        freed: Its name.
        constant: What was drawn for an input.
        place: Of that input.
    """

    freed: str
    constant: np.ndarray[Any, Any] | None = None
    place: int = -1

    @staticmethod
    def may_free(setting: Reading) -> Iterator[str]:
        """Attributes that its operator has, and its inputs that are constants.

        Args:
            setting: A setting that is allowed.
        """
        schema = setting.schema
        yield from sorted(name for name, attribute in schema.attributes.items() if attribute.type not in _GRAPHS)
        for formal, operand in zip(schema.inputs, setting.given, strict=False):
            if operand is not None and operand.array is not None:
                yield formal.name

    def _has(self, name: str) -> bool:
        return name == self.freed or super()._has(name)

    def length(self, name: str, low: int, high: int, usual: int | None = None) -> int:
        if name != self.freed:
            return super().length(name, low, high, usual)
        return self.random.randint(low, high) if usual is None else min(max(usual, low), high)

    def _value(self, name: str, domain: Domain) -> Any:
        if name != self.freed:
            return super()._value(name, domain)
        self.attributes[name] = value = drawn(domain, self.random)
        return value

    def _constant(self, name: str, domain: Domain, dtypes: tuple[str, ...]) -> Any:
        if name != self.freed:
            return super()._constant(name, domain, dtypes)
        self.place = self._place(self._formal_input(name))
        operand = self._at(self.place)
        if operand is None:
            raise NotAllowedError(f"{name} is missing")
        value = drawn(domain, self.random)
        self.constant = np.asarray(value, numpy_type(operand.type.dtype))
        self._put(self._formal_input(name), operand)
        self._bind(self._formal_input(name), operand.type.dtype)
        return value

"""A setting drawn from the first input to the last output, each choice within what those before it leave."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from conrepair_lab.generate.settings.domains import Domain
from conrepair_lab.generate.settings.expressions import Number
from conrepair_lab.generate.settings.ports import NotAllowedError, Operand, Port, Support
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.sizes import drawn_size
from conrepair_lab.generate.settings.tensors import TensorType, numpy_type, value_in
from conrepair_lab.generate.specifications.specification import spoken

_WEIGHTS = {"float32": 8, "float16": 2, "bfloat16": 2, "float64": 2, "int64": 2, "int32": 2}
"""How likely element types are; others have 1."""

_MOST, _LARGE = 4096, 0.6
"""Elements of a tensor that's not large; how likely a new one is large where it may have more."""

_FOLLOWING = 16
"""How many times more elements an input may have than others, where its sizes follow from theirs."""


class Source(ABC):
    """Where what is connected to an input comes from."""

    @abstractmethod
    def take(self, port: Port, random: Random) -> Operand:
        """A tensor for an input."""

    def told(self, dtypes: tuple[str, ...], domain: Domain, random: Random) -> Operand | None:
        """A tensor whose values don't depend on any input's, for an input of constants; None for a new one."""
        return None


class Fresh(Source):
    """A source of new tensors; many are large where there's room for it.

    Args:
        most: Elements that a tensor may have.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most

    def take(self, port: Port, random: Random) -> Operand:
        shape = port.pattern.made(_Sizes(random, self._most))
        return Operand(TensorType(chosen_dtype(port.dtypes, random), shape), port=port)


class _Sizes:
    def __init__(self, random: Random, most: int) -> None:
        self.random, self._room = random, most
        self._large = most > _MOST and random.random() < _LARGE

    def size(self, low: Number, high: Number | None) -> int:
        value = drawn_size(self.random, low, high, self._room, large=self._large)
        self._room //= max(1, value)
        return value

    def rank(self, choices: Sequence[int]) -> int:
        return self.random.choices(choices, [_RANKS[rank] for rank in choices])[0]


_RANKS = (1, 4, 6, 6, 6, 2, 1)


def chosen_dtype(dtypes: tuple[str, ...], random: Random) -> str:
    """One of some element types, those that networks have more often."""
    if len(dtypes) == 1:
        return dtypes[0]
    return random.choices(dtypes, [_WEIGHTS.get(dtype, 1) for dtype in dtypes])[0]


@dataclass(kw_only=True)
class Drawing(Setting):
    """A setting of which all is drawn; inputs come from a source.

    Attributes:
        source: Of inputs.
        most: Elements that a tensor may have.
    """

    source: Source
    most: int = 4096

    def _taken(self, port: Port) -> Operand:
        operand = self.source.take(port, self.random)
        self.require(operand.type.elements <= _FOLLOWING * self.most, "too many elements")
        return operand

    def _value(self, name: str, domain: Domain) -> Any:
        self.attributes[name] = value = drawn(domain, self.random)
        return value

    def _constant(self, name: str, domain: Domain, dtypes: tuple[str, ...]) -> Any:
        formal = self._formal_input(name)
        there = self.source.told(dtypes, domain, self.random)
        if there is not None and there.array is not None:
            self._put(formal, there)
            return value_in(there.array)
        value = drawn(domain, self.random)
        dtype = "int64" if "int64" in dtypes and self.random.random() < 0.8 else self.random.choice(dtypes)
        array = np.asarray(value, dtype=numpy_type(dtype))
        self._put(formal, Operand(TensorType(dtype, array.shape), array=array))
        if not domain.allows(value_in(array)):
            raise NotAllowedError(f"no {dtype} is near enough")
        return value

    def _made(self, result: TensorType) -> None:
        super()._made(result)
        self.require(0 not in result.shape, "nothing is left")
        self.require(result.elements <= self.most, "too many elements")


def drawn_settings(op: str, opset: int, random: Random, support: Support, most: int, tries: int) -> Iterator[Setting]:
    """Settings of an operator that reads new tensors: of so many that are drawn, those that its specification allows.

    Args:
        op: The operator.
        opset: Of the standard's operators.
        random: By which they're drawn.
        support: Within which they are.
        most: Elements that a tensor may have.
        tries: How many are drawn.
    """
    for _ in range(tries):
        with suppress(NotAllowedError):
            yield spoken(Drawing(op, opset, random, support, source=Fresh(most), most=most))


def drawn(domain: Domain, random: Random) -> Any:
    """A value that a domain allows.

    Args:
        domain: Of it.
        random: By which it's drawn.

    Raises:
        NotAllowedError: if none is left.
    """
    value = domain.drawn(random)
    if not domain.allows(value):
        raise NotAllowedError("no value is left")
    return value

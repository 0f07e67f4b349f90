"""Inputs of nodes: what may be connected to them, what is, and what a runtime takes there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from conrepair_lab.generate.settings.shapes import ShapePattern
from conrepair_lab.generate.settings.tensors import Range, TensorType

if TYPE_CHECKING:
    from conrepair_lab.generate.settings.setting import Setting

MAX_RANK = 6


class NotAllowedError(Exception):
    """A setting is outside of what a specification allows."""


@dataclass(frozen=True)
class Port:
    """An input of a node, and what may be connected to it.

    Attributes:
        name: In the operator's schema.
        dtypes: Element types.
        pattern: Shapes.
        values: Values that it must have.
        domain: Values outside of which what's computed isn't finite.
    """

    name: str
    dtypes: tuple[str, ...]
    pattern: ShapePattern
    values: Range | None = None
    domain: tuple[float, float] | None = None


@dataclass(frozen=True)
class Operand:
    """What is connected to an input.

    Attributes:
        type: Element type and sizes.
        name: Of a tensor that there is; None for a new one.
        port: That it's connected to; None for constants.
        array: The constant.
    """

    type: TensorType
    name: str | None = None
    port: Port | None = None
    array: np.ndarray[Any, Any] | None = None


class Support:
    """Which element types a runtime takes: all that the standard does, unless it's another class.

    Attributes:
        within: The one that it narrows, which is asked for all that it doesn't say itself.
    """

    within: Support | None = None

    def choices(self, op: str, bound: Mapping[str, str], variable: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        """Those of some types that one type variable of an operator may have, given those of others."""
        return dtypes if self.within is None else self.within.choices(op, bound, variable, dtypes)

    def dtypes(self, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        """Those of some types that tensors may have, whatever reads or makes them."""
        return dtypes if self.within is None else self.within.dtypes(dtypes)

    def ranks(self, ranks: Collection[int]) -> Collection[int]:
        """Those of some numbers of axes that tensors may have."""
        return ranks if self.within is None else self.within.ranks(ranks)

    def allows(self, setting: Setting) -> bool:
        """Whether a setting that is known whole is taken."""
        return self.within is None or self.within.allows(setting)


class Limits(Support):
    """A narrower support; constants that operators need as such (shapes, axes) may be of any type.

    Args:
        support: Of the runtime.
        operators: That may be there.
        dtypes: That tensors may have; all for none.
        ranks: Numbers of axes that tensors may have.
    """

    def __init__(
        self, support: Support, operators: Collection[str], dtypes: Collection[str], ranks: Collection[int]
    ) -> None:
        self.within, self._operators, self._dtypes = support, frozenset(operators), dtypes
        self._ranks = frozenset(ranks)

    def choices(self, op: str, bound: Mapping[str, str], variable: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        return super().choices(op, bound, variable, dtypes) if op in self._operators else ()

    def dtypes(self, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dtype for dtype in dtypes if dtype in self._dtypes) if self._dtypes else dtypes

    def ranks(self, ranks: Collection[int]) -> tuple[int, ...]:
        return tuple(rank for rank in ranks if rank in self._ranks)

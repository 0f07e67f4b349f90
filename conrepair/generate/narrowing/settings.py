"""Settings of one operator by which somebody is tried: some of each element type, and some of all sorts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from conrepair.generate.drawing import Drawing, Fresh
from conrepair.generate.ports import NotAllowedError, Support
from conrepair.generate.schemas import dtypes_of
from conrepair.generate.setting import Setting
from conrepair.generate.specifications.specification import specifications
from conrepair.generate.support import type_variables

__all__ = ["FEWEST", "settings_of"]

FEWEST = 20
"""Settings of each operator, at least."""

_EACH = 3
"""Of each element type of each type variable."""

_DRAWN = 60
_MOST = 256


class _OfType(Support):
    """One type variable of one operator is said in advance."""

    def __init__(self, op: str, variable: str, dtype: str, support: Support) -> None:
        self._op, self._variable, self._dtype, self._support = op, variable, dtype, support

    def choices(self, op: str, bound: Mapping[str, str], variable: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        left = self._support.choices(op, bound, variable, dtypes)
        said = (op, variable) == (self._op, self._variable)
        return tuple(dtype for dtype in left if dtype == self._dtype) if said else left


def settings_of(op: str, opset: int, support: Support) -> Iterator[Setting]:
    """Settings of an operator, always the same ones.

    Args:
        op: The operator.
        opset: Of the standard's operators.
        support: Within which they are.
    """
    random, count = Random(op), 0
    for variable in type_variables(op, opset):
        for dtype in dtypes_of(op, opset, variable):
            for _ in range(_EACH):
                setting = _drawn(op, opset, random, _OfType(op, variable, dtype, support))
                if setting is None:
                    break
                count += 1
                yield setting
    for _ in range(FEWEST - count):
        setting = _drawn(op, opset, random, support)
        if setting is not None:
            yield setting


def _drawn(op: str, opset: int, random: Random, support: Support) -> Setting | None:
    for _ in range(_DRAWN):
        setting = Drawing(op, opset, random, support, source=Fresh(_MOST), most=_MOST)
        try:
            specifications()[op].body(setting)
        except NotAllowedError:
            continue
        return setting
    return None

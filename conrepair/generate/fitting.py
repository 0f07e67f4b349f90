"""Which operators fit wishes at all: found by drawing settings of each."""

from __future__ import annotations

from functools import cache
from random import Random

from conrepair.generate.drawing import drawn_settings
from conrepair.generate.growing import one_output
from conrepair.generate.ports import Support
from conrepair.generate.wishes import Wishes

__all__ = ["fits", "fitting"]

_TRIES = 60


def fits(op: str, wishes: Wishes) -> bool:
    """Whether some setting of an operator is within the wishes."""
    random, support = Random(0), wishes.narrowed(Support())
    settings = drawn_settings(op, wishes.opset, random, support, wishes.most, _TRIES)
    return any(not wishes.single or one_output(setting) for setting in settings)


def fitting(wishes: Wishes) -> tuple[str, ...]:
    """Operators that fit: the others needn't be tried again and again; all of them where tensors may be any.

    Args:
        wishes: Of which types, ranks and elements count.
    """
    usual = Wishes()
    if (wishes.dtypes, wishes.ranks) == (usual.dtypes, usual.ranks) and wishes.most >= usual.most:
        return wishes.names
    return _fitting(wishes.names, wishes.dtypes, wishes.ranks, wishes.most, wishes.opset) or wishes.names


@cache
def _fitting(
    names: tuple[str, ...], dtypes: tuple[str, ...], ranks: tuple[int, int], most: int, opset: int
) -> tuple[str, ...]:
    wishes = Wishes(operators=names, dtypes=dtypes, ranks=ranks, most=most, opset=opset)
    return tuple(op for op in names if fits(op, wishes))

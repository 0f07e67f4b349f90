"""Values of several parameters, each with each: all of them in a whole run, some in a quick one."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from typing import Any

import pytest

__all__ = ["crossed"]


def crossed(*values: Iterable[Any], quick: Collection[tuple[Any, ...]]) -> list[Any]:
    """What `pytest.mark.parametrize` takes; combinations that aren't `quick` are marked `slow`.

    Args:
        values: Of each parameter.
        quick: Combinations that have each value at least once.
    """
    axes = [list(axis) for axis in values]
    combinations = list(itertools.product(*axes))
    assert set(quick) <= set(combinations)
    assert all({item[place] for item in quick} == set(axis) for place, axis in enumerate(axes)), "a value is missing"
    return [pytest.param(*item, marks=() if item in quick else pytest.mark.slow) for item in combinations]

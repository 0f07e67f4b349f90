"""Values of parameters: all of them in a whole run, some in a quick one."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from typing import Any

import pytest

__all__ = ["crossed", "slower"]


def crossed(*values: Iterable[Any], quick: Collection[tuple[Any, ...]]) -> list[Any]:
    """What `pytest.mark.parametrize` takes of several parameters; combinations that aren't `quick` are marked `slow`.

    Args:
        values: Of each parameter.
        quick: Combinations that have each value at least once.
    """
    axes = [list(axis) for axis in values]
    combinations = list(itertools.product(*axes))
    assert set(quick) <= set(combinations)
    assert all({item[place] for item in quick} == set(axis) for place, axis in enumerate(axes)), "a value is missing"
    return [pytest.param(*item, marks=() if item in quick else pytest.mark.slow) for item in combinations]


def slower(*values: Any) -> list[Any]:
    """Values of one parameter, or of several as tuples, marked `slow`: others, which are quicker, show the same."""
    return [pytest.param(*(item if isinstance(item, tuple) else (item,)), marks=pytest.mark.slow) for item in values]

"""Simpler inputs."""

from __future__ import annotations

from conrepair.cases.case import Array
from conrepair.cases.draft import Draft, Way
from conrepair.cases.smaller.numbers import levels

__all__ = ["VALUES"]


def _put(draft: Draft, name: str, array: Array) -> None:
    draft.inputs[name] = array


VALUES = Way("values", levels(lambda draft: draft.inputs, _put))

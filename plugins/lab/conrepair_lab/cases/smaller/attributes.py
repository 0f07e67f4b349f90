"""Attributes left to their defaults, and smaller whole numbers in the others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import onnx

from conrepair_lab.cases.draft import Change, Draft, Level, keep

_WHOLE = (onnx.AttributeProto.INT, onnx.AttributeProto.INTS)


def _left_out(draft: Draft) -> list[Change]:
    """All of them: what an operator needs, the checker asks for."""
    return [
        functools.partial(_leave_out, place=place, name=item.name)
        for place, node in enumerate(draft.model.graph.node)
        for item in node.attribute
    ]


def _leave_out(draft: Draft, place: int, name: str) -> None:
    keep(draft.model.graph.node[place].attribute, lambda item: item.name != name)


def _towards(changed: Callable[[int], int]) -> Level:
    """Whole numbers, those of a list together."""

    def level(draft: Draft) -> list[Change]:
        return [
            functools.partial(_set, place=place, name=item.name, changed=changed)
            for place, node in enumerate(draft.model.graph.node)
            for item in node.attribute
            if item.type in _WHOLE and any(changed(value) != value for value in _numbers(item))
        ]

    return level


def _set(draft: Draft, place: int, name: str, changed: Callable[[int], int]) -> None:
    item = next(item for item in draft.model.graph.node[place].attribute if item.name == name)
    if item.type == onnx.AttributeProto.INT:
        item.i = changed(item.i)
    item.ints[:] = [changed(value) for value in item.ints]


def _numbers(item: onnx.AttributeProto) -> Sequence[int]:
    return [item.i] if item.type == onnx.AttributeProto.INT else item.ints


ATTRIBUTES: tuple[Level, ...] = (
    _left_out,
    _towards(lambda value: 0),
    _towards(lambda value: min(value, 1)),
    _towards(lambda value: min(value, 2)),
    _towards(lambda value: value // 2 if value > 0 else value),
)

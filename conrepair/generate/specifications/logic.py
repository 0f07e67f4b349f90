"""Comparisons, logic, and what is chosen by a condition."""

from __future__ import annotations

from conrepair.generate.setting import Setting
from conrepair.generate.shapes import Broadcast
from conrepair.generate.specifications.specification import operator


@operator("And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor")
def of_two(s: Setting) -> None:
    a = s.input("A")
    b = s.input("B", Broadcast(a.shape))
    s.output(s.broadcast(a.shape, b.shape))


@operator("Not")
def negation(s: Setting) -> None:
    s.output(s.input("X").shape)


@operator("Where")
def chosen(s: Setting) -> None:
    x = s.input("X")
    y = s.input("Y", Broadcast(x.shape))
    both = s.broadcast(x.shape, y.shape)
    condition = s.input("condition", Broadcast(both))
    s.output(s.broadcast(both, condition.shape))

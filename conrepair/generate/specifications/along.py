"""Operators that compute along an axis, and keep the shape."""

from __future__ import annotations

from conrepair.generate.setting import Setting
from conrepair.generate.specifications.specification import operator


@operator("Hardmax", "LogSoftmax", "Softmax")
def shares(s: Setting) -> None:
    x = s.input("input", rank=range(1, 7))
    s.axis("axis", x.rank)
    s.output(x.shape)


@operator("CumSum")
@operator("CumProd")
def running(s: Setting) -> None:
    x = s.input("x", rank=range(1, 7))
    s.axis("axis", x.rank)
    s.flag("exclusive")
    s.flag("reverse")
    s.output(x.shape)


@operator("LpNormalization")
def of_length_one(s: Setting) -> None:
    x = s.input("input", rank=range(1, 7))
    s.axis("axis", x.rank)
    s.choice("p", (1, 2))
    s.output(x.shape)

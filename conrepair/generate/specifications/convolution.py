"""Convolutions."""

from __future__ import annotations

from conrepair.generate.setting import Setting
from conrepair.generate.shapes import Size
from conrepair.generate.specifications.registry import operator
from conrepair.generate.windows import slid


@operator("Conv")
def convolution(s: Setting) -> None:
    n, c, *space = s.input("X", rank=(3, 4, 5), least=1).shape
    group = s.integer("group", 1, c)
    s.require(c % group == 0, "channels that are no multiple of the groups")
    w = s.input("W", [Size(), c // group, *(Size(1, 5) for _ in space)])
    s.require(w.shape[0] % group == 0, "filters that are no multiple of the groups")
    if s.has("B"):
        s.input("B", [w.shape[0]])
    if s.has("kernel_shape"):
        s.integers("kernel_shape", w.shape[2:], w.shape[2:])
    s.output([n, w.shape[0], *slid(s, space, w.shape[2:])])

"""Convolutions."""

from __future__ import annotations

from conrepair.generate.setting import Setting
from conrepair.generate.shapes import Size
from conrepair.generate.specifications.registry import operator
from conrepair.generate.windows import image, sliding


@operator("Conv")
def convolution(s: Setting) -> None:
    n, c, *space = image(s)
    group = s.integer("group", 1, c)
    s.require(c % group == 0, "channels that are no multiple of the groups")
    windows = sliding(s, space)
    w = s.input("W", [Size(0), c // group, *(Size(1, widest) for widest in windows.widest())])
    s.require(w.shape[0] % group == 0, "filters that are no multiple of the groups")
    if s.has("B"):
        s.input("B", [w.shape[0]])
    if s.has("kernel_shape"):
        s.integers("kernel_shape", w.shape[2:], w.shape[2:])
    s.output([n, w.shape[0], *windows.places(s, w.shape[2:])])

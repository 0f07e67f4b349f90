"""Windows that are made one number."""

from __future__ import annotations

from conrepair.generate.setting import Setting
from conrepair.generate.specifications.registry import operator
from conrepair.generate.windows import image, sliding


@operator("AveragePool", "LpPool", "MaxPool")
def of_windows(s: Setting) -> None:
    n, c, *space = image(s)
    windows = sliding(s, space)
    pads = windows.pads or (0,) * (2 * len(space))
    narrowest = [max(pads[axis], pads[axis + len(space)]) + 1 for axis in range(len(space))]
    kernel = s.integers("kernel_shape", narrowest, windows.widest())
    ceiled = s.has("ceil_mode") and s.flag("ceil_mode")
    shape = [n, c, *windows.places(s, kernel, ceiled=ceiled)]
    if windows.pads is None:
        for size, places, wide, stride in zip(space, shape[2:], kernel, windows.strides, strict=True):
            s.require((places - 1) * stride + wide >= size, "a stride that takes away at the ends")
    if s.op == "LpPool" and s.has("p"):
        s.integer("p", 1, 4)
    if s.has("count_include_pad"):
        s.flag("count_include_pad")
    s.output(shape)
    if s.has("Indices"):
        s.flag("storage_order")
        s.output(shape)


@operator("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
def of_all(s: Setting) -> None:
    n, c, *space = image(s)
    if s.has("p"):
        s.integer("p", 1, 4)
    s.output([n, c, *(1 for _ in space)])

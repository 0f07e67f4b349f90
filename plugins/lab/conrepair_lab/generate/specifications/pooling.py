"""Pooling: operators that reduce windows to one number."""

from __future__ import annotations

from conrepair_lab.generate.settings.expressions import product
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import Size
from conrepair_lab.generate.settings.tensors import Range
from conrepair_lab.generate.settings.windows import image, sliding
from conrepair_lab.generate.specifications.specification import operator


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
    s.maybe(s.flag, "count_include_pad")
    s.output(shape)
    if s.has("Indices"):
        s.flag("storage_order")
        s.output(shape)


@operator("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
def of_all(s: Setting) -> None:
    n, c, *space = image(s)
    s.maybe(s.integer, "p", 1, 4)
    s.output([n, c, *(1 for _ in space)])


@operator()
def max_unpool(s: Setting) -> None:
    n, c, *space = image(s)
    kernel = s.integers("kernel_shape", 1, None, len(space))
    strides = s.integers("strides", 1, None, len(space)) if s.has("strides") else (1,) * len(space)
    pads = (
        s.integers("pads", 0, [wide - 1 for wide in (*kernel, *kernel)]) if s.has("pads") else (0,) * 2 * len(space)
    )
    ends = zip(pads, pads[len(space) :], strict=False)
    sizes = [
        (size - 1) * stride + wide - sum(both)
        for size, stride, wide, both in zip(space, strides, kernel, ends, strict=True)
    ]
    for size in sizes:
        s.require(size >= 1, "pads that take away all")
    shape = s.sizes("output_shape", [n, c, *map(Size, sizes)]) if s.has("output_shape") else (n, c, *sizes)
    s.require(product(shape) >= product([n, c, *space]), "places that are taken twice")
    s.input("I", [n, c, *space], values=Range(0, product(shape) - 1, distinct=True, overall=True))
    s.output(shape)

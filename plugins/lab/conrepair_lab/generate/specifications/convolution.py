"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from conrepair_lab.generate.settings.expressions import Number, product
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import AnyShape, Size
from conrepair_lab.generate.settings.windows import image, sliding
from conrepair_lab.generate.specifications.specification import operator


@operator()
def conv(s: Setting) -> None:
    result = convolved(s, image(s), "W")
    s.maybe(s.input, "B", [result[1]])
    s.output(result)


def convolved(s: Setting, shape: Sequence[Number], weights: str) -> list[Number]:
    """Draw weights for an image, and how they slide over it, and give the result's shape."""
    n, c, *space = shape
    group = s.integer("group", 1, c)
    s.require(c % group == 0, "channels that are no multiple of the groups")
    windows = sliding(s, space)
    w = s.input(weights, [Size(0), c // group, *(Size(1, widest) for widest in windows.widest())])
    s.require(w.shape[0] % group == 0, "filters that are no multiple of the groups")
    s.maybe(s.integers, "kernel_shape", w.shape[2:], w.shape[2:])
    return [n, w.shape[0], *windows.places(s, w.shape[2:])]


@operator()
def conv_transpose(s: Setting) -> None:
    s.forbid("output_shape", "ONNX infers a result without batch and channels")
    n, c, *space = image(s)
    group = s.integer("group", 1, c)
    s.require(c % group == 0, "channels that are no multiple of the groups")
    w = s.input("W", [c, Size(0), *(Size() for _ in space)])
    kernel = w.shape[2:]
    s.maybe(s.input, "B", [w.shape[1] * group])
    s.maybe(s.integers, "kernel_shape", kernel, kernel)
    windows = sliding(s, space)
    strides = windows.strides
    more = [0 for _ in space]
    if s.has("output_padding"):
        more = list(s.integers("output_padding", 0, [stride - 1 for stride in strides]))
    full = [
        (size - 1) * stride + wide for size, stride, wide in zip(space, strides, windows.reach(kernel), strict=True)
    ]
    if windows.pads is None:
        sizes = [size * stride for size, stride in zip(space, strides, strict=True)]
        s.require(not any(more), "ONNX and ONNX Runtime pad to the same size with and without output_padding")
        for size, same in zip(full, sizes, strict=True):
            s.require(size >= same, "ONNX Runtime makes less than the same size of a small window")
    else:
        ends = zip(windows.pads, windows.pads[len(space) :], strict=False)
        sizes = [size + further - sum(pads) for size, further, pads in zip(full, more, ends, strict=True)]
        for size in sizes:
            s.require(size >= 1, "pads that take away all")
    s.output([n, w.shape[1] * group, *sizes])


@operator()
def deform_conv(s: Setting) -> None:
    n, c, *space = image(s, ranks=[4])
    group, offsets = s.integer("group", 1, c), s.integer("offset_group", 1, c)
    s.require(c % group == 0, "channels that are no multiple of the groups")
    s.require(c % offsets == 0, "channels that are no multiple of the offsets' groups")
    windows = sliding(s, space)
    w = s.input("W", [Size(times=group), c // group, *(Size(1, widest) for widest in windows.widest())])
    kernel = w.shape[2:]
    places = windows.places(s, kernel)
    s.input("offset", [n, 2 * offsets * product(kernel), *places])
    s.maybe(s.input, "B", [w.shape[0]])
    s.maybe(s.input, "mask", [n, offsets * product(kernel), *places])
    s.maybe(s.integers, "kernel_shape", kernel, kernel)
    s.output([n, w.shape[0], *places])


@operator()
def col2im(s: Setting) -> None:
    space = s.sizes("image_shape", AnyShape((1, 2, 3), 1))
    windows = sliding(s, space)
    block = s.integers("block_shape", 1, windows.widest())
    n, columns, _ = s.input("input", [Size(0), Size(times=product(block)), product(windows.places(s, block))]).shape
    s.output([n, columns // product(block), *space])

"""Operators that give a tensor another shape, or cut from it and pad it."""

from __future__ import annotations

from conrepair_lab.generate.settings.expressions import Number, ceil_div, known, least, most, product
from conrepair_lab.generate.settings.layouts import NewShape, Places
from conrepair_lab.generate.settings.ports import MAX_RANK
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import Broadcast, Size
from conrepair_lab.generate.specifications.specification import operator


@operator()
def reshape(s: Setting) -> None:
    x = s.input("data")
    zeros = not (s.has("allowzero") and s.flag("allowzero"))
    value = s.value("shape", NewShape(x.shape, zeros, s.wanted))
    sizes = [x.shape[place] if size == 0 and zeros else size for place, size in enumerate(value)]
    if -1 in value:
        others = product(size for size, said in zip(sizes, value, strict=True) if said != -1)
        s.require(others != 0, "nothing says what is left of no elements")
        sizes[value.index(-1)] = product(x.shape) // others
    s.equal(product(sizes), product(x.shape))
    s.output(sizes)


@operator()
def squeeze(s: Setting) -> None:
    x = s.input("data")
    ones = [axis for axis, size in enumerate(x.shape) if not known(size) or size == 1]
    if s.has("axes"):
        gone = s.axes("axes", x.rank, among=ones)
        for axis in gone:
            s.equal(x.shape[axis], 1)
    else:
        s.require(all(map(known, x.shape)), "a rank that depends on sizes")
        gone = tuple(ones)
    s.output([size for axis, size in enumerate(x.shape) if axis not in gone])


@operator()
def unsqueeze(s: Setting) -> None:
    x = s.input("data", rank=range(MAX_RANK))
    count = s.length("axes", 1, MAX_RANK - x.rank, None if s.wanted is None else len(s.wanted) - x.rank)
    new = s.axes("axes", x.rank + count, count, count)
    sizes = iter(x.shape)
    s.output([1 if axis in new else next(sizes) for axis in range(x.rank + count)])


@operator()
def expand(s: Setting) -> None:
    x = s.input("input")
    s.output(s.broadcast(x.shape, s.sizes("shape", Broadcast(x.shape))))


@operator()
def pad(s: Setting) -> None:
    x = s.input("data", rank=range(1, 7))
    mode = s.choice("mode", ("constant", "reflect", "edge", "wrap")[: 4 if s.opset >= 19 else 3])
    axes = s.axes("axes", x.rank) if s.has("axes") else tuple(range(x.rank))
    pads = s.integers("pads", None, None, 2 * len(axes), usual=(-1, 3))
    s.maybe(s.input, "constant_value", [])
    s.require(mode != "wrap" or product(x.shape) > 0, "ONNX Runtime wraps no empty tensors")
    sizes = list(x.shape)
    for axis, before, after in zip(axes, pads, pads[len(axes) :], strict=False):
        kept = sizes[axis] + min(before, 0) + min(after, 0)
        if mode != "constant" and (before or after):
            s.require(kept > 0, "nothing is left to repeat")
        if mode == "reflect":
            s.require((max(before, after) < kept) | (before == after == 0), "more is reflected than there is")
        sizes[axis] = sizes[axis] + before + after
    s.output(sizes)


@operator("Slice")
def sliced(s: Setting) -> None:
    x = s.input("data", rank=range(1, 7))
    count = s.length("starts", 1, x.rank)
    axes = s.axes("axes", x.rank, count, count) if s.has("axes") else tuple(range(count))
    steps = (1,) * count
    if s.has("steps"):
        steps = s.integers("steps", None, None, count, usual=(-3, 3))
        s.require(0 not in steps, "a step of 0")
    sizes = [x.shape[axis] for axis in axes]
    starts = s.value("starts", Places(sizes, steps))
    far = 2 ** (63 if s.types["Tind"] == "int64" else 31) - 1
    ends = s.value("ends", Places(sizes, steps, starts, far))
    shape = list(x.shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        shape[axis] = _elements(x.shape[axis], start, end, step)
    s.output(shape)


@operator()
def center_crop_pad(s: Setting) -> None:
    x = s.input("input_data", rank=range(1, 7))
    axes = s.axes("axes", x.rank) if s.has("axes") else tuple(range(x.rank))
    sizes = s.sizes("shape", [Size(0) for _ in axes])
    s.output([sizes[axes.index(axis)] if axis in axes else size for axis, size in enumerate(x.shape)])


def _elements(size: Number, start: int, end: int, step: int) -> Number:
    """How many elements a slice has."""
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first, last = (least(most(place + size if place < 0 else place, low), high) for place in (start, end))
    if step < 0:
        first = most(first, 0)
    return most(ceil_div(last - first, step) if step > 0 else ceil_div(first - last, -step), 0)

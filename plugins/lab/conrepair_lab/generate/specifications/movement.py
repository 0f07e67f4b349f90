"""Operators that move elements, and compute nothing."""

from __future__ import annotations

from conrepair_lab.generate.settings.expressions import product
from conrepair_lab.generate.settings.layouts import Parts
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import Size
from conrepair_lab.generate.settings.tensors import Range
from conrepair_lab.generate.specifications.specification import operator


@operator()
def transpose(s: Setting) -> None:
    x = s.input("data")
    order = s.permutation("perm", x.rank) if s.has("perm") else tuple(reversed(range(x.rank)))
    s.output([x.shape[axis] for axis in order])


@operator()
def flatten(s: Setting) -> None:
    x = s.input("input")
    axis = s.integer("axis", -x.rank, x.rank)
    s.output([product(x.shape[:axis]), product(x.shape[axis:])])


@operator()
def concat(s: Setting) -> None:
    first = s.input("inputs", rank=range(1, 7))
    axis = s.axis("axis", first.rank)
    length = first.shape[axis]
    for _ in range(s.count(0, 3)):
        other = s.input("inputs", [Size(0) if place == axis else size for place, size in enumerate(first.shape)])
        length = length + other.shape[axis]
    s.output([length if place == axis else size for place, size in enumerate(first.shape)])


@operator()
def split(s: Setting) -> None:
    x = s.input("input", rank=range(1, 7))
    axis = s.axis("axis", x.rank)
    size = x.shape[axis]
    count = s.count(1, 5, "outputs")
    if s.has("split"):
        parts = s.sizes("split", Parts(size, count))
        s.equal(sum(parts), size)
    elif "num_outputs" in s.schema.attributes:
        s.integer("num_outputs", count, count)
        part = -(-size // count)
        parts = (*(part for _ in range(count - 1)), size - part * (count - 1))
        s.require(parts[-1] > 0, "ONNX Runtime has no empty last part")
    else:
        s.require(size % count == 0, "parts that aren't equal")
        parts = (size // count,) * count
    for part in parts:
        s.output([*x.shape[:axis], part, *x.shape[axis + 1 :]])


@operator()
def tile(s: Setting) -> None:
    x = s.input("input")
    repeats = s.integers("repeats", 0, None, x.rank, usual=(1, 4))
    s.output([size * times for size, times in zip(x.shape, repeats, strict=True)])


@operator()
def depth_to_space(s: Setting) -> None:
    n, c, h, w = s.input("input", rank=4).shape
    block = s.integer("blocksize", 1, None, usual=(1, 4))
    s.choice("mode", ("DCR", "CRD"))
    s.require(c % (block * block) == 0, "channels that are no multiple of the block")
    s.output([n, c // (block * block), h * block, w * block])


@operator()
def space_to_depth(s: Setting) -> None:
    n, c, h, w = s.input("input", rank=4).shape
    block = s.integer("blocksize", 1, None, usual=(1, 4))
    s.require((h % block == 0) & (w % block == 0), "an image that is no multiple of the block")
    s.output([n, c * block * block, h // block, w // block])


@operator()
def reverse_sequence(s: Setting) -> None:
    x = s.input("input", rank=range(2, 7))
    time = s.integer("time_axis", 0, 1)
    batch = s.integer("batch_axis", 0, 1)
    s.require(time != batch, "the same axis twice")
    s.input("sequence_lens", [x.shape[batch]], values=Range(0, x.shape[time]))
    s.output(x.shape)


@operator()
def trilu(s: Setting) -> None:
    x = s.input("input", rank=range(2, 7))
    s.flag("upper")
    s.maybe(s.integer, "k", None, None, usual=(-5, 5))
    s.output(x.shape)

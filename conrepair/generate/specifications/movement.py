"""Operators that move elements, and compute nothing."""

from __future__ import annotations

from conrepair.generate.expressions import product
from conrepair.generate.setting import Setting
from conrepair.generate.shapes import Size
from conrepair.generate.specifications.registry import operator


@operator("Transpose")
def transposed(s: Setting) -> None:
    x = s.input("data")
    order = s.permutation("perm", x.rank) if s.has("perm") else tuple(reversed(range(x.rank)))
    s.output([x.shape[axis] for axis in order])


@operator("Flatten")
def flattened(s: Setting) -> None:
    x = s.input("input")
    axis = s.integer("axis", -x.rank, x.rank)
    s.output([product(x.shape[:axis]), product(x.shape[axis:])])


@operator("Concat")
def joined(s: Setting) -> None:
    first = s.input("inputs", rank=range(1, 7))
    axis = s.axis("axis", first.rank)
    length = first.shape[axis]
    for _ in range(s.count(0, 3)):
        other = s.input("inputs", [Size() if place == axis else size for place, size in enumerate(first.shape)])
        length = length + other.shape[axis]
    s.output([length if place == axis else size for place, size in enumerate(first.shape)])


@operator("DepthToSpace")
def depth_to_space(s: Setting) -> None:
    n, c, h, w = s.input("input", rank=4, least=1).shape
    block = s.integer("blocksize", 1, 4)
    s.choice("mode", ("DCR", "CRD"))
    s.require(c % (block * block) == 0, "channels that are no multiple of the block")
    s.output([n, c // (block * block), h * block, w * block])

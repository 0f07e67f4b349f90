"""Operators that make values of shapes, or of nothing."""

from __future__ import annotations

from conrepair.generate.literals import literal
from conrepair.generate.setting import MAX_RANK, Setting
from conrepair.generate.shapes import AnyShape
from conrepair.generate.specifications.registry import operator


@operator("Constant")
def constant(s: Setting) -> None:
    if s.has("value"):
        held = literal(s, "value")
        s.output(held.shape, held.dtype)
    elif s.has("value_ints"):
        count = s.length("value_ints", 0, 64, (s.wanted or (None,))[0])
        s.integers("value_ints", None, None, count, usual=(-8, 8))
        s.output([count], "int64")
    elif s.has("value_floats"):
        count = s.length("value_floats", 0, 64, (s.wanted or (None,))[0])
        s.reals("value_floats", -float("inf"), float("inf"), count)
        s.output([count], "float32")
    elif s.has("value_int"):
        s.integer("value_int", None, None, usual=(-8, 8))
        s.output([], "int64")
    else:
        s.real("value_float", -float("inf"), float("inf"))
        s.output([], "float32")


@operator("ConstantOfShape")
def constant_of_shape(s: Setting) -> None:
    sizes = s.sizes("input", AnyShape(range(MAX_RANK + 1)))
    s.output(sizes, literal(s, "value", (1,)).dtype if s.has("value") else "float32")


@operator("EyeLike")
def ones_on_a_diagonal(s: Setting) -> None:
    x = s.input("input", rank=2)
    dtype = s.element_type("dtype") if s.has("dtype") else x.dtype
    s.integer("k", None, None, usual=(-3, 3))
    s.output(x.shape, dtype)


@operator("Range")
def counted(s: Setting) -> None:
    start = s.integer("start", None, None, usual=(-4, 4))
    step = s.integer("delta", None, None, usual=(-3, 3))
    s.require(step != 0, "a step of 0")
    fewest, most = (1, 20) if s.wanted is None else s.wanted * 2
    ends = sorted((start + (fewest - 1) * step + (1 if step > 0 else -1), start + most * step))
    end = s.integer("limit", None, None, usual=(ends[0], ends[1]))
    s.output([max(0, -((start - end) // step))])


@operator("Shape")
def shape_of(s: Setting) -> None:
    x = s.input("data")
    first = s.integer("start", None, None, usual=(-x.rank, x.rank)) if s.has("start") else 0
    last = s.integer("end", None, None, usual=(-x.rank, x.rank)) if s.has("end") else x.rank
    s.output([len(range(x.rank)[first:last])])


@operator("Size")
def elements(s: Setting) -> None:
    s.input("data")
    s.output([])

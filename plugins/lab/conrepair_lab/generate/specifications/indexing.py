"""Operators that choose elements by index or by value."""

from __future__ import annotations

from collections.abc import Sequence

from conrepair_lab.generate.settings.expressions import Number, product
from conrepair_lab.generate.settings.ports import MAX_RANK
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import AnyShape, Lettered, Size
from conrepair_lab.generate.settings.tensors import BOOL, NUMERIC, Range
from conrepair_lab.generate.specifications.specification import operator


@operator()
def gather(s: Setting) -> None:
    x = s.input("data", rank=range(1, 7))
    axis = s.axis("axis", x.rank)
    size = x.shape[axis]
    places = s.input("indices", rank=range(MAX_RANK - x.rank + 2), values=Range(-size, size - 1))
    s.require((size > 0) | (product(places.shape) == 0), "places of no elements")
    s.output([*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]])


@operator()
def gather_elements(s: Setting) -> None:
    x = s.input("data", rank=range(1, 7))
    axis = s.axis("axis", x.rank)
    size = x.shape[axis]
    shape = [Size(0, None if place == axis else other) for place, other in enumerate(x.shape)]
    places = s.input("indices", shape, values=Range(-size, size - 1))
    s.require((size > 0) | (product(places.shape) == 0), "places of no elements")
    s.output(places.shape)


@operator()
def gather_nd(s: Setting) -> None:
    x = s.input("data", rank=range(1, 7))
    batch = s.integer("batch_dims", 0, x.rank - 1)
    depth = s.size_of("indices", -1, 1, x.rank - batch)
    inner = x.shape[batch : batch + depth]
    places = s.input("indices", _of_depth(x.shape[:batch], depth, x.rank), values=_inside(inner))
    s.require((product(inner) > 0) | (product(places.shape) == 0), "places of no elements")
    s.output([*places.shape[:-1], *x.shape[batch + depth :]])


@operator()
def scatter_elements(s: Setting) -> None:
    reduction, dtypes = _reduction(s, halves=("max", "min"))
    x = s.input("data", rank=range(1, 7), dtypes=dtypes)
    axis = s.axis("axis", x.rank)
    size = x.shape[axis]
    once = reduction == "none"
    shape = [Size(0, None if place == axis and not once else other) for place, other in enumerate(x.shape)]
    wanted = Range(0 if once else -size, size - 1, distinct=once, axis=axis)
    places = s.input("indices", shape, values=wanted)
    s.require((size > 0) | (product(places.shape) == 0), "places of no elements")
    s.input("updates", places.shape)
    s.output(x.shape)


@operator()
def scatter_nd(s: Setting) -> None:
    reduction, dtypes = _reduction(s)
    x = s.input("data", rank=range(1, 7), dtypes=dtypes)
    once = reduction == "none"
    depth = s.size_of("indices", -1, 1, x.rank)
    inner = x.shape[:depth]
    places = s.input("indices", _of_depth((), depth, x.rank), values=_inside(inner, once=once))
    rows = product(places.shape[:-1])
    s.require((product(inner) > 0) | (rows == 0), "places of no elements")
    s.require(not once or rows <= product(inner), "the same place twice")
    s.input("updates", [*places.shape[:-1], *x.shape[depth:]])
    s.output(x.shape)


@operator()
def tensor_scatter(s: Setting) -> None:
    x = s.input("past_cache", rank=range(2, 7))
    axis = s.axis("axis", x.rank)
    s.require(axis > 0, "the axis of the batch")
    room = x.shape[axis]
    shape = [Size(0, room) if place == axis else size for place, size in enumerate(x.shape)]
    written = s.input("update", shape).shape[axis]
    circular = s.choice("mode", ("linear", "circular")) == "circular"
    s.maybe(s.input, "write_indices", [x.shape[0]], values=Range(0, room - 1 if circular else room - written))
    s.output(x.shape)


@operator()
def one_hot(s: Setting) -> None:
    places = s.input("indices", rank=s.ranks_below(1, 1, MAX_RANK - 1))
    axis = s.integer("axis", -places.rank - 1, places.rank) % (places.rank + 1)
    depth = s.size_said("depth")
    s.input("values", [2])
    s.output([*places.shape[:axis], depth, *places.shape[axis:]])


@operator()
def top_k(s: Setting) -> None:
    x = s.input("X", rank=range(1, 7))
    axis = s.axis("axis", x.rank)
    (count,) = s.sizes("K", [Size(0, x.shape[axis])])
    s.flag("largest")
    s.integer("sorted", 1, 1)
    shape = [count if place == axis else size for place, size in enumerate(x.shape)]
    s.output(shape)
    s.output(shape)


@operator()
def compress(s: Setting) -> None:
    x = s.input("input", rank=range(1, 7))
    if s.has("axis"):
        axis = s.axis("axis", x.rank)
        s.input("condition", [Size(0, x.shape[axis])])
        s.output([None if place == axis else size for place, size in enumerate(x.shape)])
    else:
        s.input("condition", [Size(0, product(x.shape))])
        s.output([None])


@operator()
def nonzero(s: Setting) -> None:
    x = s.input("X")
    s.output([x.rank, None])


@operator()
def unique(s: Setting) -> None:
    x = s.input("X")
    if s.has("axis"):
        s.require(x.rank > 0, "no axis")
        axis = s.axis("axis", x.rank)
        shape = [None if place == axis else size for place, size in enumerate(x.shape)]
        number = x.shape[axis]
        s.require((product(x.shape) > 0) | (number == 0), "ONNX Runtime ends the process")
    else:
        shape, number = [None], product(x.shape)
    s.flag("sorted")
    s.output(shape)
    for name, size in (("indices", None), ("inverse_indices", number), ("counts", None)):
        if s.has(name):
            s.output([size])
        else:
            s.no_output()


_HALVES = ("float16", "bfloat16")


def _reduction(s: Setting, halves: Sequence[str] = ()) -> tuple[str, tuple[str, ...]]:
    """What is done with what was there, and element types of which that can be done.

    Args:
        s: The node.
        halves: What ONNX Runtime does with real numbers of 16 bits besides nothing.
    """
    options = ("none", "add", "mul", "max", "min")
    chosen = s.choice("reduction", options[: 5 if s.opset >= 18 else 3])
    if chosen == "none":
        return chosen, (*NUMERIC, *BOOL)
    return chosen, tuple(dtype for dtype in NUMERIC if dtype not in _HALVES or chosen in halves)


def _of_depth(batch: Sequence[Number], depth: int, rank: int) -> Lettered:
    """Places along so many axes each, behind the axes of a batch."""
    letters = "abcdef"[: len(batch)]
    sizes = {**dict(zip(letters, batch, strict=True)), "z": depth}
    return Lettered(f"{letters}...z", sizes, AnyShape(range(MAX_RANK - max(rank - depth, len(batch) + 1) + 1)))


def _inside(sizes: Sequence[Number], *, once: bool = False) -> Range:
    """Places inside of axes, a number for each; none twice if it's `once`."""
    lows = tuple(0 if once else -size for size in sizes)
    return Range(lows, tuple(size - 1 for size in sizes), rows=once)

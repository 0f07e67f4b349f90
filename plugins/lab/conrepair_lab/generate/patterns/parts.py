"""The words of patterns: what they are put together from besides operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from conrepair_lab.generate.settings.ports import MAX_RANK, NotAllowedError
from conrepair_lab.generate.settings.tensors import BOOL, FLOATS, NUMERIC, Range, element_type
from conrepair_lab.generate.weaving import Weaver

_FLOAT = ("float32",)
_AXES = (1, 2, 3, 4)


def some(w: Weaver, dtypes: Collection[str] = _FLOAT, rank: int | Collection[int] = _AXES, least: int = 1) -> str:
    """A tensor of the network, or a new one where there is none of that sort."""
    return w.pick(dtypes, rank=rank, least=least, new=True)


def made(w: Weaver, dtypes: Collection[str] = _FLOAT) -> str:
    """A tensor that a node makes: rules leave alone much of what reads an input of the network."""
    x = some(w, dtypes)
    return w.node("Neg" if w.random.random() < 0.5 else "Abs", x) if x in w.draft.sources else x


def read(w: Weaver, x: str) -> str:
    """Let a node read a tensor: rules leave alone much of what is an output of the network."""
    return w.node(w.random.choice(["Abs", "Neg", "Sign"]), x)


def image(w: Weaver, channels: int = 1) -> str:
    """A small tensor of four axes with some channels at least: one of the network, or a new one."""
    with suppress(NotAllowedError):
        x = w.pick(_FLOAT, rank=4, least=3)
        n, c, high, wide = w.type_of(x).shape
        if c >= channels and n * max(c, 16) * high * wide <= 1024:
            return x
    return w.new("float32", (1, w.random.randint(channels, 8), *(w.random.randint(3, 7) for _ in range(2))))


def tokens(w: Weaver, by: int = 1) -> str:
    """A small tensor of three axes, the last of which can be divided: one of the network, or a new one."""
    with suppress(NotAllowedError):
        x = w.pick(_FLOAT, rank=3, least=2)
        if _width(w, x) % by == 0 and w.type_of(x).elements <= 256:
            return x
    return w.new("float32", (w.random.randint(1, 2), w.random.randint(2, 6), by * w.random.randint(1, 3)))


def scalar(w: Weaver, value: float, x: str) -> str:
    """A constant of one number, of a tensor's element type."""
    return w.constant(value, w.type_of(x).dtype)


def conv(w: Weaver, x: str, filters: int | None = None, size: int = 3, *, bias: bool = True, **said: Any) -> str:
    """A convolution with constant weights that keeps an image's size, unless something else is said."""
    channels = w.type_of(x).shape[1]
    made = filters or w.random.choice((1, 3, 4, 8, 16))
    weight = w.weight(made, channels // said.get("group", 1), size, size)
    said.setdefault("pads", (size // 2,) * 4)
    return w.node("Conv", x, weight, *([w.weight(made)] if bias else []), **said)


def quantized(w: Weaver, x: str, dtype: str = "uint8", zero: int | None = None) -> str:
    """A tensor as eight bits."""
    return w.node("QuantizeLinear", x, w.constant(0.05, "float32"), _zero(w, dtype, zero))


def dequantized(w: Weaver, x: str, scale: float = 0.05, zero: int | None = None) -> str:
    """Eight bits, or a constant's thirty-two, as a float."""
    return w.node("DequantizeLinear", x, w.constant(scale, "float32"), _zero(w, w.type_of(x).dtype, zero))


def _zero(w: Weaver, dtype: str, zero: int | None) -> str:
    return w.constant((128 if dtype == "uint8" else 0) if zero is None else zero, dtype)


def hidden(w: Weaver, x: str) -> str:
    """Something that is no output of the network, though nothing reads it."""
    w.draft.hidden.add(x)
    return x


def some_axes(w: Weaver, x: str) -> list[int]:
    """One or more of a tensor's axes, in order."""
    rank = w.type_of(x).rank
    return sorted(w.random.sample(range(rank), w.random.randint(1, rank)))


def apply(w: Weaver, op: str, *inputs: str, **said: Any) -> str:
    """What an operator makes whose name was chosen."""
    return w.node(op, *inputs, **said)


def in_any_order(w: Weaver, *items: Any) -> list[Any]:
    """They themselves."""
    return w.random.sample(items, len(items))


def _width(w: Weaver, x: str) -> int:
    return int(w.type_of(x).shape[-1])


def shape(_: Weaver, *items: int | Collection[int]) -> tuple[int, ...]:
    """Sizes one after another."""
    return tuple(size for item in items for size in ((item,) if isinstance(item, int) else item))


NAMES: Mapping[str, Any] = {
    "FLOATS": FLOATS,
    "NUMERIC": NUMERIC,
    "ANY_TYPE": NUMERIC + BOOL,
    "HALVES": (*_FLOAT, "float16"),
    "ANY_RANK": range(1, MAX_RANK + 1),
    "LAST": 2**63 - 1,
    "MINUS_ZERO": -0.0,
    "pi": math.pi,
}
"""What stands for itself."""

WORDS: Mapping[str, Callable[..., Any]] = {
    **{word.__name__: word for word in (some, made, read, image, tokens, conv, quantized, dequantized, hidden)},
    **{word.__name__: word for word in (some_axes, apply, in_any_order, shape)},
    # Tensors.
    "new": lambda w, *sizes, values=None, dtype="float32": w.new(dtype, shape(w, *sizes), values and Range(*values)),
    "like": lambda w, x: w.new(w.type_of(x).dtype, w.type_of(x).shape),
    "weight": lambda w, *sizes, **said: w.weight(*shape(w, *sizes), **said),
    "row": lambda w, x: w.weight(_width(w, x), dtype=w.type_of(x).dtype),
    "constant": lambda w, values, dtype="int64": w.constant(values, dtype),
    "single": lambda w, value, x: w.constant([value], w.type_of(x).dtype),
    "ints": lambda w, *values: w.constant(shape(w, *values)),
    "filled": lambda w, value, *sizes: w.constant(np.full(sizes, value)),
    "cast": lambda w, x, dtype: w.node("Cast", x, to=element_type(dtype)),
    "over": lambda w, old, new: w.takes_over(old, new),
    "all": lambda _, *results: results,
    # Sizes and axes.
    "a_type": lambda w, dtypes: w.dtype(dtypes),
    "dtype": lambda w, x: w.type_of(x).dtype,
    "sizes": lambda w, x: w.type_of(x).shape,
    "size": lambda w, x, axis: w.type_of(x).shape[axis],
    "channels": lambda w, x: w.type_of(x).shape[1],
    "width": _width,
    "tail": lambda w, x: w.type_of(x).shape[1:],
    "front": lambda w, x: w.type_of(x).shape[:-2],
    "rank": lambda w, x: w.type_of(x).rank,
    "axes": lambda w, x: tuple(range(w.type_of(x).rank)),
    "axis": lambda w, x: w.random.randrange(w.type_of(x).rank),
    "shuffled": lambda w, x: tuple(w.random.sample(range(w.type_of(x).rank), w.type_of(x).rank)),
    "back": lambda _, order: tuple(order.index(axis) for axis in range(len(order))),
    "last_two_swapped": lambda w, x: (*range(r := w.type_of(x).rank)[:-2], r - 1, r - 2),
    "repeated": lambda _, value, count: [value] * count,
    "largest": lambda _, values: max(values),
    "reversed": lambda _, values: values[::-1],
    # Numbers.
    "drawn": lambda w, low, high: w.random.randint(low, high),
    "sqrt": lambda _, number: math.sqrt(number),
}
"""By name; each is given the weaver first."""

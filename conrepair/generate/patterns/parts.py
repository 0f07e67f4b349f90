"""What patterns are put together from."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

from conrepair.generate.ports import NotAllowedError
from conrepair.generate.tensors import element_type
from conrepair.generate.weaving import Weaver

__all__ = [
    "FLOAT",
    "cast",
    "conv",
    "dequantized",
    "image",
    "linear",
    "made",
    "quantized",
    "read",
    "requantized",
    "scalar",
    "tokens",
    "width",
]

FLOAT = ("float32",)


def made(
    w: Weaver, dtypes: Collection[str] = FLOAT, *, rank: int | Collection[int] = range(1, 5), least: int = 1
) -> str:
    """A tensor that a node makes: rules leave alone much of what reads an input of the network."""
    x = w.pick_or_new(dtypes, rank=rank, least=least)
    return w.node("Neg" if w.random.random() < 0.5 else "Abs", x) if x in w.draft.sources else x


def read(w: Weaver, x: str) -> str:
    """Let a node read a tensor: rules leave alone much of what is an output of the network."""
    return w.node(w.random.choice(["Abs", "Neg", "Sign"]), x)


def image(w: Weaver, *, channels: int = 1) -> str:
    """A small tensor of four axes with some channels at least: one of the network, or a new one."""
    with suppress(NotAllowedError):
        x = w.pick(FLOAT, rank=4, least=3)
        n, c, high, wide = w.type_of(x).shape
        if c >= channels and n * max(c, 16) * high * wide <= 1024:
            return x
    return w.new("float32", (1, w.random.randint(channels, 8), *(w.random.randint(3, 7) for _ in range(2))))


def tokens(w: Weaver, by: int = 1) -> str:
    """A small tensor of three axes, the last of which can be divided: one of the network, or a new one."""
    with suppress(NotAllowedError):
        x = w.pick(FLOAT, rank=3, least=2)
        if width(w, x) % by == 0 and w.type_of(x).elements <= 256:
            return x
    return w.new("float32", (w.random.randint(1, 2), w.random.randint(2, 6), by * w.random.randint(1, 3)))


def width(w: Weaver, x: str) -> int:
    """How long the last axis is."""
    return int(w.type_of(x).shape[-1])


def scalar(w: Weaver, value: float, x: str | None = None) -> str:
    """A constant of one number, of a tensor's element type."""
    return w.constant(value, "float32" if x is None else w.type_of(x).dtype)


def conv(w: Weaver, x: str, filters: int | None = None, size: int = 3, *, bias: bool = True, **said: Any) -> str:
    """A convolution with constant weights that keeps an image's size, unless something else is said."""
    channels = w.type_of(x).shape[1]
    made = filters or w.random.choice((1, 3, 4, 8, 16))
    weight = w.weight(made, channels // said.get("group", 1), size, size)
    said.setdefault("pads", (size // 2,) * 4)
    return w.node("Conv", x, weight, *([w.weight(made)] if bias else []), **said)


def linear(w: Weaver, x: str, units: int, *, bias: bool = True) -> str:
    """A product with constant weights, and a sum with a constant."""
    product = w.node("MatMul", x, w.weight(width(w, x), units))
    return w.node("Add", product, w.weight(units)) if bias else product


def cast(w: Weaver, x: str, dtype: str) -> str:
    """A tensor as another element type."""
    return w.node("Cast", x, to=element_type(dtype))


def quantized(w: Weaver, x: str, dtype: str = "uint8", scale: float = 0.05, zero: int | None = None) -> str:
    """A tensor as eight bits."""
    middle = (128 if dtype == "uint8" else 0) if zero is None else zero
    return w.node("QuantizeLinear", x, w.constant(scale, "float32"), w.constant(middle, dtype))


def dequantized(w: Weaver, x: str, scale: float = 0.05, zero: int | None = None) -> str:
    """Eight bits, or a constant's thirty-two, as a float."""
    dtype = w.type_of(x).dtype
    middle = (128 if dtype == "uint8" else 0) if zero is None else zero
    return w.node("DequantizeLinear", x, w.constant(scale, "float32"), w.constant(middle, dtype))


def requantized(w: Weaver, x: str, dtype: str = "uint8") -> str:
    """A tensor as eight bits and back, as quantized networks have it between all operators."""
    return dequantized(w, quantized(w, x, dtype))

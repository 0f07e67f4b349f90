"""What usual networks are made of: a residual block, attention, squeeze and excitation, a gated linear unit."""

from __future__ import annotations

from conrepair.generate.patterns.registry import pattern
from conrepair.generate.weaving import Weaver


@pattern("gated linear unit")
def gated(w: Weaver) -> None:
    x = w.pick_or_new(("float32",), rank=(2, 3))
    width, inner = w.type_of(x).shape[-1], w.random.choice([2, 4, 8])
    gate = w.node("MatMul", x, w.new("float32", (width, inner)))
    value = w.node("MatMul", x, w.new("float32", (width, inner)))
    both = w.node("Mul", w.node("Mul", gate, w.node("Sigmoid", gate)), value)
    w.node("MatMul", both, w.new("float32", (inner, width)))


@pattern("residual block")
def residual(w: Weaver) -> None:
    x = w.pick_or_new(("float32",), rank=4, least=3)
    channels = w.type_of(x).shape[1]
    weight = w.new("float32", (channels, channels, 3, 3))
    inner = w.node("Relu", w.node("Conv", x, weight, pads=(1, 1, 1, 1)))
    w.node("Relu", w.node("Add", w.node("Conv", inner, weight, pads=(1, 1, 1, 1)), x))

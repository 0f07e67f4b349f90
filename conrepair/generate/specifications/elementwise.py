"""Operators that compute each element by itself, of one tensor or of several that are broadcast."""

from __future__ import annotations

from conrepair.generate.setting import Setting
from conrepair.generate.shapes import Broadcast
from conrepair.generate.specifications.registry import operator

_INFINITE = float("inf")

LIMITED = {
    "Acos": (-1.0, 1.0),
    "Acosh": (1.0, _INFINITE),
    "Asin": (-1.0, 1.0),
    "Atanh": (-0.999, 0.999),
    "Log": (1e-4, _INFINITE),
    "Sqrt": (0.0, _INFINITE),
}
"""Where functions of one number are finite."""


@operator(
    "Abs", "Asinh", "Atan", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "HardSwish", "Identity", "Mish", "Neg"
)
@operator("Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Tan", "Tanh")
@operator(*LIMITED)
def of_each(s: Setting) -> None:
    x = s.input(domain=LIMITED.get(s.op))
    s.output(x.shape)


@operator("Elu", "Celu", "LeakyRelu", "ThresholdedRelu")
def with_alpha(s: Setting) -> None:
    x = s.input("X")
    s.real("alpha", 0.01, 100.0, usual=(1.0, 0.01, 0.2))
    s.output(x.shape)


@operator("Add", "Sub", "Mul")
def of_two(s: Setting) -> None:
    a = s.input("A")
    b = s.input("B", Broadcast(a.shape))
    s.output(s.broadcast(a.shape, b.shape))


@operator("Max", "Mean", "Min", "Sum")
def of_several(s: Setting) -> None:
    shape = s.input().shape
    for _ in range(s.count(0, 3)):
        shape = s.broadcast(shape, s.input(shape=Broadcast(shape)).shape)
    s.output(shape)

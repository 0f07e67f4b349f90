"""Operators that compute each element by itself, of one tensor or of several that are broadcast."""

from __future__ import annotations

from collections.abc import Mapping

from conrepair.generate.expressions import Number
from conrepair.generate.setting import Setting
from conrepair.generate.shapes import Broadcast
from conrepair.generate.specifications.specification import operator
from conrepair.generate.tensors import REALS, Range
from conrepair.operators.all_operators import ROUNDED

_INFINITE = float("inf")

LIMITED = {name: item.domain for name, item in sorted(ROUNDED.items()) if item.domain}
"""Where functions of one number are finite."""


@operator("Abs", "Asinh", "Atan", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "HardSwish", "Identity", "Neg")
@operator("Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Tan", "Tanh")
@operator("Mish", "BitwiseNot", least_opset=18)
@operator(*LIMITED)
@operator("IsNaN", still=True)
def of_each(s: Setting) -> None:
    x = s.input(domain=LIMITED.get(s.op))
    s.output(x.shape)


_SETTINGS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    **{op: {"alpha": (1.0, 0.01, 0.2)} for op in ("Celu", "Elu", "LeakyRelu", "ThresholdedRelu")},
    "HardSigmoid": {"alpha": (0.2, 1 / 6), "beta": (0.5,)},
    "Selu": {"alpha": (1.6732632, 1.0), "gamma": (1.0507010, 1.0)},
    "Shrink": {"bias": (0.0, 0.5), "lambd": (0.5,)},
    "Swish": {"alpha": (1.0, 1.702)},
}
"""Attributes that are real numbers, each with the usual ones."""


@operator(*_SETTINGS.keys() - {"Swish"})
@operator("Swish", least_opset=24)
def with_settings(s: Setting) -> None:
    x = s.input()
    for name, usual in _SETTINGS[s.op].items():
        s.real(name, -100.0, 100.0, usual=usual)
    s.require(s.op != "Celu" or s.attributes["alpha"] != 0, "a division by alpha")
    s.output(x.shape)


@operator("Gelu", least_opset=20)
def gelu(s: Setting) -> None:
    x = s.input("X")
    s.choice("approximate", ("none", "tanh"))
    s.output(x.shape)


@operator("PRelu")
def with_slopes(s: Setting) -> None:
    x = s.input("X")
    s.input("slope", Broadcast(x.shape, one_way=True))
    s.output(x.shape)


@operator("Clip")
def clipped(s: Setting) -> None:
    x = s.input("input")
    for name in ("min", "max"):
        if s.has(name):
            s.input(name, ())
    s.output(x.shape)


@operator("Dropout")
def untrained_dropout(s: Setting) -> None:
    x = s.input("data")
    if s.has("ratio"):
        s.input("ratio", (), values=Range(0, 0.99))
    if s.has("training_mode"):
        s.input("training_mode", (), values=Range(0, 0))
    s.output(x.shape)
    if s.has("mask"):
        s.output(x.shape)


@operator("IsInf", still=True)
def infinite(s: Setting) -> None:
    x = s.input("X")
    s.flag("detect_negative")
    s.flag("detect_positive")
    s.output(x.shape)


@operator("Add", "Mul", "Sub")
@operator("BitwiseAnd", "BitwiseOr", "BitwiseXor", least_opset=18)
def of_two(s: Setting) -> None:
    a = s.input("A")
    b = s.input("B", Broadcast(a.shape))
    s.output(s.broadcast(a.shape, b.shape))


@operator("Div")
def quotient(s: Setting) -> None:
    a = s.input("A")
    b = _divisor(s, a.shape, a.dtype)
    s.output(s.broadcast(a.shape, b))


@operator("Mod")
def remainder(s: Setting) -> None:
    a = s.input("A")
    b = _divisor(s, a.shape, a.dtype)
    s.require(s.flag("fmod") or a.dtype not in REALS, "floats have fmod's sign only")
    s.output(s.broadcast(a.shape, b))


@operator("Pow")
def power(s: Setting) -> None:
    x = s.input("X", domain=(1e-2, _INFINITE))
    y = s.input("Y", Broadcast(x.shape), domain=(0.0, 4.0))
    s.output(s.broadcast(x.shape, y.shape))


@operator("BitShift")
def shifted(s: Setting) -> None:
    x = s.input("X")
    bits = int(x.dtype.removeprefix("uint"))
    y = s.input("Y", Broadcast(x.shape), values=Range(0, bits - 1))
    s.choice("direction", ("LEFT", "RIGHT"))
    s.output(s.broadcast(x.shape, y.shape))


@operator("Max", "Mean", "Min", "Sum")
def of_several(s: Setting) -> None:
    shape = s.input().shape
    for _ in range(s.count(0, 3)):
        shape = s.broadcast(shape, s.input(shape=Broadcast(shape)).shape)
    s.output(shape)


def _divisor(s: Setting, shape: tuple[Number, ...], dtype: str) -> tuple[Number, ...]:
    """What is divided by: never what stops the process (0; -1, under the smallest integer), nor near 0."""
    if dtype in REALS:
        return s.input("B", Broadcast(shape), domain=(1e-2, _INFINITE)).shape
    signed = not dtype.startswith("u")
    return s.input("B", Broadcast(shape), values=Range(-8 if signed else 1, 8, without=(-1, 0))).shape

"""Operators that compute each element by itself, of one tensor or of several that are broadcast."""

from __future__ import annotations

import onnx

from conrepair.ground.operators.all_operators import OPERATORS
from conrepair_lab.generate.settings.expressions import Number
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import Broadcast
from conrepair_lab.generate.settings.tensors import REALS, Range
from conrepair_lab.generate.specifications.specification import operator

_INFINITE = float("inf")
_USUAL = {"alpha": (1.0, 0.2, 1 / 6, 1.702), "bias": (0.5,), "gamma": (1.0,)}
"""Attributes' values that networks often have besides the default."""


def of_each(s: Setting) -> None:
    record = OPERATORS[s.op]
    x = s.input(domain=record.domain)
    for name, default in record.attributes.items():
        if isinstance(default, float):
            s.real(name, -100.0, 100.0, usual=(default, *_USUAL.get(name, ())))
    s.require(s.op != "Celu" or s.attributes["alpha"] != 0, "a division by alpha")
    s.output(x.shape)


def of_two(s: Setting) -> None:
    a = s.input()
    b = s.input(shape=Broadcast(a.shape))
    s.output(s.broadcast(a.shape, b.shape))


# All of the standard's that compute each element by itself and have no attributes but real numbers.
for _name, _record in OPERATORS.items():
    _is_plain = all(isinstance(default, float | bool) for default in _record.attributes.values())
    if onnx.defs.has(_name) and _record.operands and _is_plain:
        operator(_name)(of_each if _record.operands == 1 else of_two)

operator("BitwiseAnd", "BitwiseOr", "BitwiseXor")(of_two)


@operator("BitwiseNot")
@operator("IsNaN", still=True)
def of_any_bits(s: Setting) -> None:
    s.output(s.input().shape)


@operator()
def gelu(s: Setting) -> None:
    x = s.input("X")
    s.choice("approximate", ("none", "tanh"))
    s.output(x.shape)


@operator()
def prelu(s: Setting) -> None:
    x = s.input("X")
    s.input("slope", Broadcast(x.shape, one_way=True))
    s.output(x.shape)


@operator()
def clip(s: Setting) -> None:
    x = s.input("input")
    for name in ("min", "max"):
        s.maybe(s.input, name, ())
    s.output(x.shape)


@operator()
def dropout(s: Setting) -> None:
    x = s.input("data")
    s.maybe(s.input, "ratio", (), values=Range(0, 0.99))
    s.maybe(s.input, "training_mode", (), values=Range(0, 0))
    s.output(x.shape)
    if s.has("mask"):
        s.output(x.shape)


@operator()
def where(s: Setting) -> None:
    x = s.input("X")
    y = s.input("Y", Broadcast(x.shape))
    both = s.broadcast(x.shape, y.shape)
    condition = s.input("condition", Broadcast(both))
    s.output(s.broadcast(both, condition.shape))


@operator(still=True)
def is_inf(s: Setting) -> None:
    x = s.input("X")
    s.flag("detect_negative")
    s.flag("detect_positive")
    s.output(x.shape)


@operator()
def div(s: Setting) -> None:
    a = s.input("A")
    b = _divisor(s, a.shape, a.dtype)
    s.output(s.broadcast(a.shape, b))


@operator()
def mod(s: Setting) -> None:
    a = s.input("A")
    b = _divisor(s, a.shape, a.dtype)
    s.require(s.flag("fmod") or a.dtype not in REALS, "floats have fmod's sign only")
    s.output(s.broadcast(a.shape, b))


@operator("Pow")
def power(s: Setting) -> None:
    x = s.input("X", domain=(1e-2, _INFINITE))
    y = s.input("Y", Broadcast(x.shape), domain=(0.0, 4.0))
    s.output(s.broadcast(x.shape, y.shape))


@operator()
def bit_shift(s: Setting) -> None:
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

"""Whole numbers that may not be known yet: what sizes are while a specification is solved.

Specifications calculate with sizes as with any other number; `least`, `most` and `product` stand in for what Python's
own functions can't do with an unknown one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

__all__ = ["Expression", "Number", "Unknown", "ceil_div", "known", "least", "most", "product", "value_of"]

_APPLY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    "<": operator.lt,
    "or": lambda left, right: bool(left) or bool(right),
    "and": lambda left, right: bool(left) and bool(right),
}


class Expression:
    """An operator applied to two numbers, of which at least one is unknown; compared, it's a condition."""

    __slots__ = ("left", "op", "right", "unknowns")
    __hash__ = object.__hash__

    def __init__(self, op: str, left: Number, right: Number) -> None:
        self.op, self.left, self.right = op, left, right
        self.unknowns: frozenset[Unknown] = _unknowns(left) | _unknowns(right)

    def __add__(self, other: Number) -> Number:
        return _made("+", self, other)

    def __radd__(self, other: Number) -> Number:
        return _made("+", other, self)

    def __sub__(self, other: Number) -> Number:
        return _made("-", self, other)

    def __rsub__(self, other: Number) -> Number:
        return _made("-", other, self)

    def __mul__(self, other: Number) -> Number:
        return _made("*", self, other)

    def __rmul__(self, other: Number) -> Number:
        return _made("*", other, self)

    def __floordiv__(self, other: Number) -> Number:
        return _made("//", self, other)

    def __rfloordiv__(self, other: Number) -> Number:
        return _made("//", other, self)

    def __mod__(self, other: Number) -> Number:
        return _made("%", self, other)

    def __rmod__(self, other: Number) -> Number:
        return _made("%", other, self)

    def __neg__(self) -> Number:
        return _made("-", 0, self)

    def __eq__(self, other: object) -> Any:
        return _made("==", self, other)

    def __ne__(self, other: object) -> Any:
        return _made("!=", self, other)

    def __le__(self, other: Number) -> Any:
        return _made("<=", self, other)

    def __lt__(self, other: Number) -> Any:
        return _made("<", self, other)

    def __ge__(self, other: Number) -> Any:
        return _made("<=", other, self)

    def __gt__(self, other: Number) -> Any:
        return _made("<", other, self)

    def __or__(self, other: Any) -> Any:
        return _made("or", self, other)

    __ror__ = __or__

    def __and__(self, other: Any) -> Any:
        return _made("and", self, other)

    __rand__ = __and__

    def __bool__(self) -> bool:
        message = "a size that isn't known yet was asked for its truth: a specification needs `s.require` here"
        raise TypeError(message)

    def __repr__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


class Unknown(Expression):
    """A number that's to be found between two bounds."""

    __slots__ = ("high", "low", "name")
    __hash__ = object.__hash__

    def __init__(self, name: str, low: int, high: int) -> None:
        self.name, self.low, self.high = name, low, high
        self.op, self.left, self.right = "?", 0, 0
        self.unknowns = frozenset([self])

    def __repr__(self) -> str:
        return self.name


Number = Any
"""An int, or an `Expression`; conditions are bools, or `Expression`s."""


def _unknowns(number: Number) -> frozenset[Unknown]:
    return number.unknowns if isinstance(number, Expression) else frozenset()


def _made(op: str, left: Any, right: Any) -> Number:
    if op in {"or", "and"}:
        for here, other in ((left, right), (right, left)):
            if known(here):
                return other if bool(here) == (op == "and") else bool(here)
    neutral = {"*": 1, "//": 1, "+": 0, "-": 0}.get(op)
    if neutral is not None and known(right) and right == neutral:
        return left
    if op in {"*", "+"} and known(left) and left == neutral:
        return right
    return Expression(op, left, right)


def known(number: Number) -> bool:
    """Whether a number, or a condition, is a plain one."""
    return not isinstance(number, Expression)


def value_of(number: Number, values: Mapping[Unknown, int]) -> Any:
    """What a number or a condition is, given the unknowns it has.

    Raises:
        KeyError: if one of them isn't given.
    """
    if not isinstance(number, Expression):
        return number
    if isinstance(number, Unknown):
        return values[number]
    return _APPLY[number.op](value_of(number.left, values), value_of(number.right, values))


def least(left: Number, right: Number) -> Number:
    """The smaller of two numbers."""
    return min(left, right) if known(left) and known(right) else _made("min", left, right)


def most(left: Number, right: Number) -> Number:
    """The larger of two numbers."""
    return max(left, right) if known(left) and known(right) else _made("max", left, right)


def product(numbers: Iterable[Number]) -> Number:
    """All numbers, multiplied; 1 for none."""
    return reduce(operator.mul, numbers, 1)


def ceil_div(left: Number, right: Number) -> Number:
    """A quotient, rounded up."""
    return -(-left // right)

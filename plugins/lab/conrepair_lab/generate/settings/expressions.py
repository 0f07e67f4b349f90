"""Whole numbers that may not be known yet: what sizes are while a specification is solved.

Specifications calculate with sizes as with any other number; `least`, `most` and `product` stand in for what Python's
own functions can't do with an unknown one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

APPLY: Mapping[str, Callable[[Any, Any], Any]] = {
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
"""What an expression's operator computes."""


def _before(op: str) -> Callable[[Any, Any], Any]:
    """A method that makes an expression of a number and what stands behind it."""
    return lambda self, other: _made(op, self, other)


def _behind(op: str) -> Callable[[Any, Any], Any]:
    """A method that makes an expression of a number and what stands before it."""
    return lambda self, other: _made(op, other, self)


class Expression:
    """An operator applied to two numbers, of which at least one is unknown; compared, it's a condition."""

    __slots__ = ("left", "op", "right", "unknowns")
    __hash__ = object.__hash__

    def __init__(self, op: str, left: Number, right: Number) -> None:
        self.op, self.left, self.right = op, left, right
        self.unknowns: frozenset[Unknown] = _unknowns(left) | _unknowns(right)

    __add__, __radd__ = _before("+"), _behind("+")
    __sub__, __rsub__ = _before("-"), _behind("-")
    __mul__, __rmul__ = _before("*"), _behind("*")
    __floordiv__, __rfloordiv__ = _before("//"), _behind("//")
    __mod__, __rmod__ = _before("%"), _behind("%")
    __eq__, __ne__ = _before("=="), _before("!=")
    __le__, __ge__ = _before("<="), _behind("<=")
    __lt__, __gt__ = _before("<"), _behind("<")
    __or__ = __ror__ = _before("or")
    __and__ = __rand__ = _before("and")

    def __neg__(self) -> Number:
        return _made("-", 0, self)

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
    return APPLY[number.op](value_of(number.left, values), value_of(number.right, values))


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

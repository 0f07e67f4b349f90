"""The expressions that exported programs hold as text, which PyTorch evaluates: sizes, and guards of inputs.

They are parsed here by a grammar that has arithmetic, comparisons and the functions of sizes, and nothing else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

__all__ = ["is_guard", "is_size"]

_SYMBOL = re.compile(r"[a-z]{1,8}\d+")
_CONSTANTS = {
    "oo",
    "int_oo",
    "nan",
    "true",
    "false",
    "Infinity",
    "NegativeInfinity",
    "IntInfinity",
    "NegativeIntInfinity",
}
_POWERS = {"Pow", "PowByNatural", "FloatPow", "LShift"}
_FUNCTIONS = _POWERS | {
    "Abs", "Add", "And", "BooleanFalse", "BooleanTrue", "CeilDiv", "CeilToInt", "CleanDiv", "Eq", "Equality",
    "FloatTrueDiv", "FloorDiv", "FloorToInt", "Ge", "GreaterThan", "Gt", "Identity", "IntTrueDiv", "Integer",
    "IsNonOverlappingAndDenseIndicator", "Le", "LessThan", "Lt", "Max", "Min", "Mod", "ModularIndexing", "Mul", "Ne",
    "Not", "Or", "Piecewise", "PythonMod", "RShift", "Rational", "RoundDecimal", "RoundToInt", "StrictGreaterThan",
    "StrictLessThan", "ToFloat", "TruncToFloat", "TruncToInt", "Unequality", "Where", "Xor", "ceiling", "floor",
    "log", "log2", "sign", "sqrt",
}  # fmt: skip
_OPAQUE = re.compile(r"(OpaqueUnaryFn|BitwiseFn)_[a-z0-9_]+")
_NAMED = {"Symbol", "Dummy", "Float"}  # take a text
_KEY = re.compile(r"[\w.\- ]*")
_METHODS = {"size", "stride", "storage_offset", "dim", "item", "numel"}
_OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.BitAnd,
    ast.BitOr, ast.BitXor, ast.USub, ast.UAdd, ast.Not, ast.Invert, ast.And, ast.Or, ast.Eq, ast.NotEq, ast.Lt,
    ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip
_LARGEST_POWER = 64
_LARGEST = 1 << 64
_LONGEST = 100_000


def is_size(text: Any) -> bool:
    """Whether a text is an expression of sizes, as `torch.export.save` writes them."""
    return _follows(text, _is_symbol)


def is_guard(text: Any) -> bool:
    """Whether a text is a condition on the sizes of inputs: what's in them is `L['name'].size()[0]`."""
    return _follows(text, _is_of_input)


def _follows(text: Any, leaf: Callable[[ast.expr], bool]) -> bool:
    if not isinstance(text, str) or len(text) > _LONGEST:
        return False
    try:
        return _is_plain(ast.parse(text.strip(), mode="eval").body, leaf)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False


def _is_plain(node: ast.expr, leaf: Callable[[ast.expr], bool]) -> bool:
    def plain(inner: ast.expr) -> bool:
        return _is_plain(inner, leaf)

    match node:
        case ast.Constant(value=bool() | float()):
            return True
        case ast.Constant(value=int(value)):
            return value <= _LARGEST
        case ast.BinOp(left=left, op=ast.Pow() | ast.LShift(), right=right):
            return plain(left) and _is_small(right)
        case ast.BinOp(left=left, op=operator, right=right):
            return isinstance(operator, _OPERATORS) and plain(left) and plain(right)
        case ast.UnaryOp(op=operator, operand=operand):
            return isinstance(operator, _OPERATORS) and plain(operand)
        case ast.BoolOp(values=values) | ast.Tuple(elts=values):
            return all(map(plain, values))
        case ast.Compare(left=left, ops=operators, comparators=others):
            return all(isinstance(item, _OPERATORS) for item in operators) and all(map(plain, [left, *others]))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _POWERS:
            return len(arguments) == 2 and plain(arguments[0]) and _is_small(arguments[1])
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS or _OPAQUE.fullmatch(
            name
        ):
            return all(map(plain, arguments))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=name), args=arguments, keywords=[]):
            return name.isalnum() and all(map(plain, arguments))
    return leaf(node)


def _is_small(node: ast.expr) -> bool:
    """Whether it's a power that doesn't take for ever."""
    match node:
        case ast.Call(func=ast.Name(id="Integer"), args=[inner], keywords=[]):
            return _is_small(inner)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _is_small(inner)
        case ast.Constant(value=int() | float() as value):
            return abs(value) <= _LARGEST_POWER
        case ast.Call(func=ast.Name(id="Rational"), args=arguments, keywords=[]):
            return all(map(_is_small, arguments))
    return False


def _is_symbol(node: ast.expr) -> bool:
    """A name of a size, `Symbol('s48', positive=True, integer=True)`, or `Float('0.5', precision=53)`."""
    match node:
        case ast.Name(id=name):
            return name in _CONSTANTS or _SYMBOL.fullmatch(name) is not None
        case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(text))], keywords=keywords):
            known = _SYMBOL.fullmatch(text) if name != "Float" else re.fullmatch(r"-?[\d.]+(e[+-]?\d{1,3})?", text)
            settings = all(isinstance(item.value, ast.Constant) and item.arg for item in keywords)
            return name in _NAMED and known is not None and settings
    return False


def _is_of_input(node: ast.expr) -> bool:
    """`L['name']`, what's in it, its size; functions of sizes by themselves are no value."""
    match node:
        case ast.Name(id=name):
            return name in {"L", "inf"}
        case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
            return _KEY.fullmatch(key) is not None and _is_of_input(value)
        case ast.Subscript(value=value, slice=ast.Constant(value=int())):
            return _is_of_input(value)
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=arguments, keywords=[]):
            whole = all(isinstance(item, ast.Constant) and isinstance(item.value, int) for item in arguments)
            return name in _METHODS and whole and _is_of_input(value)
    return False

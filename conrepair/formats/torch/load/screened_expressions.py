"""The expressions that exported programs hold as text, which PyTorch evaluates: sizes, and guards of inputs.

They are parsed here by a grammar that has arithmetic, comparisons and the functions of sizes, and nothing else. What
they come to is bounded too, before any library computes it: the bits of each number on the way, and the terms that
SymPy would have if it multiplied everything out.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from typing import Any

_SYMBOL = re.compile(r"[a-z]{1,8}\d{1,5}")  # PyTorch counts up to the number
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
_RELATIONS = ast.Eq | ast.NotEq | ast.Lt | ast.LtE | ast.Gt | ast.GtE
_OF_MATH = {
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "fabs", "floor", "log",
    "log2", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
}  # fmt: skip
_NO_LARGER = {"Max", "Min", "Mod", "PythonMod", "Where", "Piecewise", "Identity", "Abs", "Integer", "ToFloat"}
_LARGEST_POWER = 64
_BITS = 64  # of a size, and of a number as it's written
_BITS_OF_FLOAT = 1024
_MOST_BITS = 1 << 14
_MOST_TERMS = 1 << 10
_MOST_PARTS = 4096
_MOST_COMPARED = 16  # operands of maxima and minima: SymPy compares each with each, by solving
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
        tree = ast.parse(text.strip(), mode="eval")
        parts = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
        calls = [node for node in parts if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        compared = sum(len(call.args) for call in calls if ast.unparse(call.func) in {"Max", "Min"})
        if len(parts) > _MOST_PARTS or compared > _MOST_COMPARED:
            return False
        _size(tree.body, leaf)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


def _size(node: ast.expr, leaf: Callable[[ast.expr], bool]) -> tuple[int, int]:
    """The most bits that a value can have, and the terms of it when it's multiplied out.

    Raises:
        ValueError: if it's beyond the grammar or the bounds.
    """
    bits, terms = _measured(node, leaf)
    if bits > _MOST_BITS or terms > _MOST_TERMS:
        raise ValueError("it comes to too large a number or sum")
    return bits, terms


def _measured(node: ast.expr, leaf: Callable[[ast.expr], bool]) -> tuple[int, int]:
    name, more = "Max", 0
    match node:
        case ast.Constant(value=int(value)):
            return value.bit_length(), 1
        case ast.Constant(value=float()):
            return _BITS_OF_FLOAT, 1
        case ast.BinOp(left=left, op=operator, right=right) if not isinstance(operator, ast.MatMult):
            name, operands = type(operator).__name__, [left, right]
        case ast.UnaryOp(operand=operand):
            operands = [operand]
        case ast.BoolOp(values=operands) | ast.Tuple(elts=operands):
            pass
        case ast.Compare(left=left, ops=relations, comparators=others) if all(
            isinstance(relation, _RELATIONS) for relation in relations
        ):
            operands = [left, *others]
        case ast.Call(func=ast.Name(id=name), args=operands, keywords=[]) if name in _FUNCTIONS:
            pass
        case ast.Call(func=ast.Name(id=name), args=operands, keywords=[]) if _OPAQUE.fullmatch(name):
            more = _BITS_OF_FLOAT
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=name), args=operands, keywords=[]) if (
            name in _OF_MATH
        ):
            more = _BITS_OF_FLOAT
        case _ if leaf(node):
            return _BITS_OF_FLOAT if isinstance(node, ast.Call) else _BITS, 1
        case _:
            raise ValueError("it's beyond the grammar")
    if name in _POWERS:
        base, power = operands  # a ValueError otherwise
        (bits, terms), times = _size(base, leaf), _small(power)
        return (bits + times, terms) if name == "LShift" else (bits * times, terms ** (times if terms > 1 else 1))
    found = [(1, 1), *(_size(operand, leaf) for operand in operands)]
    several, parts = [bits for bits, _ in found], [terms for _, terms in found]
    if name in {"Add", "Sub"}:
        return max(several) + len(several), sum(parts) - 1
    if name in _NO_LARGER:
        return max(several), max(parts)
    return sum(several) + more, math.prod(parts)


def _small(node: ast.expr) -> int:
    """A power, as a whole number of at least its size.

    Raises:
        ValueError: if it isn't written as a number, or would take for ever.
    """
    match node:
        case (
            ast.Call(func=ast.Name(id="Integer"), args=[inner], keywords=[])
            | ast.UnaryOp(op=ast.USub(), operand=inner)
        ):
            return _small(inner)
        case ast.Constant(value=int() | float() as value) if abs(value) <= _LARGEST_POWER:
            return math.ceil(abs(value))
        case ast.Call(func=ast.Name(id="Rational"), args=[one, two], keywords=[]):
            return max(_small(one), _small(two))
    raise ValueError("the power isn't small")


def _is_symbol(node: ast.expr) -> bool:
    """A name of a size, `Symbol('s48', positive=True, integer=True)`, or `Float('0.5', precision=53)`."""
    match node:
        case ast.Name(id=name):
            return name in _CONSTANTS or _SYMBOL.fullmatch(name) is not None
        case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(text))], keywords=keywords):
            known = (
                _SYMBOL.fullmatch(text)
                if name != "Float"
                else re.fullmatch(r"-?[\d.]{1,64}(e[+-]?[0-2]?\d{1,2})?", text)
            )
            settings = all(
                item.arg and isinstance(item.value, ast.Constant) and _is_setting(item.value.value)
                for item in keywords
            )
            return name in _NAMED and known is not None and settings
    return False


def _is_setting(value: Any) -> bool:
    return value is None or (isinstance(value, int) and abs(value) <= _BITS_OF_FLOAT)  # of digits, or true or false


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

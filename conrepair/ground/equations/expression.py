"""Operators applied to operators, as text: what is looked for in a graph, written into one, or computed.

`Log(1 + Exp(x))` is three nodes; `e = Exp(x); (e - 1) / (e + 1)` names what is read twice, `a, b = Split(x)` several
results. Names that nothing defines are tensors, or numbers of the node (`Elu(x, alpha=alpha)`); `**attributes` are
all attributes that a node has. `None` is an input that's left out; `[x0, -1, x2 * 2]` are whole numbers, of which
names are numbers of the node, or a tensor's sizes by its name and the axis.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

ALL = "**"  # in place of an attribute's name
ITEM = "[]"  # in place of an operator's: one of several results, at the `place` that is its attribute
_NAMES = {"Mult": "Mul", "Lt": "Less", "Gt": "Greater", "USub": "Neg"}  # Python's nodes that ONNX calls otherwise


@dataclass(frozen=True)
class Term:
    """An operator's call.

    Attributes:
        operator: ONNX's name, or that of a macro.
        operands: In order.
        attributes: By name; a number, a text or a tuple, or what a name or another term stands for.
    """

    operator: str
    operands: tuple[Expression, ...]
    attributes: tuple[tuple[str, Any], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether it's one operator of tensors, not of others."""
        return all(isinstance(item, str) for item in self.operands)


Expression: TypeAlias = "Term | str | float | tuple[Expression, ...] | None"


@functools.cache
def parse(text: str) -> Expression:
    """Read an expression.

    Raises:
        ValueError: if it's none.
    """
    known: dict[str, Expression] = {}
    for step in ast.parse(text).body:
        match step:
            case ast.Assign([ast.Name(name)], value):
                known[name] = _read(value, known)
            case ast.Assign([ast.Tuple(names)], value):
                results = _read(value, known)
                for place, item in enumerate(names):
                    known[ast.unparse(item)] = Term(ITEM, (results,), (("place", place),))
            case ast.Expr(value):
                return _read(value, known)
    raise ValueError(f"{text!r} computes nothing")


def names_in(expression: Expression) -> list[str]:
    """The tensors that an expression reads, in the order in which they stand there."""
    if isinstance(expression, Term):
        return list(dict.fromkeys(name for item in expression.operands for name in names_in(item)))
    return [expression] if isinstance(expression, str) else []


Value = TypeVar("Value")


def computed(
    expression: Expression,
    values: Mapping[str, Value],
    number: Callable[[Any], Value],
    call: Callable[[Term, list[Value]], Value],
) -> Value:
    """What an expression computes, of values of any sort; what stands there twice is computed once.

    Args:
        expression: What to compute.
        values: By the expression's names.
        number: Makes a value of a number, or of several whole ones.
        call: Applies a term's operator to the values of its operands.
    """
    known: dict[Any, Any] = {None: None}

    def value(item: Expression) -> Any:
        if isinstance(item, str):
            return values[item]
        if item not in known:
            known[item] = (
                call(item, [value(one) for one in item.operands]) if isinstance(item, Term) else number(item)
            )
        return known[item]

    return value(expression)  # type: ignore[no-any-return]


def horner(name: str, factors: Sequence[float]) -> str:
    """The text of a polynomial.

    Args:
        name: What the powers are of.
        factors: From the constant term on.
    """
    *front, last = factors
    text = repr(last)
    for factor in reversed(front):
        text = f"({text}) * {name} + {factor!r}"
    return text


def _read(node: ast.expr, known: Mapping[str, Expression]) -> Expression:
    match node:
        case ast.Name(name):
            return known.get(name, name)
        case ast.Constant(value):
            return value if isinstance(value, str | None) else float(value)  # type: ignore[arg-type]
        case ast.List(items):
            return tuple(_read(item, known) for item in items)
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
            return -float(value)
        case ast.UnaryOp(operator, operand):
            return _term(operator, operand, known=known)
        case ast.BinOp(left, operator, right) | ast.Compare(left, [operator], [right]):
            return _term(operator, left, right, known=known)
        case ast.Call(ast.Name(name), operands, keywords):
            attributes = tuple((item.arg or ALL, _attribute(item.value, known)) for item in keywords)
            return Term(name, tuple(_read(item, known) for item in operands), attributes)
    raise ValueError(f"no operator is meant by {ast.unparse(node)!r}")


def _attribute(node: ast.expr, known: Mapping[str, Expression]) -> Any:
    """As it's written: integers stay integers."""
    try:
        said = ast.literal_eval(node)
        return tuple(said) if isinstance(said, list) else said
    except ValueError:
        if isinstance(node, ast.Tuple):
            return tuple(_attribute(item, known) for item in node.elts)
        return _read(node, known)


def _term(operator: ast.AST, *operands: ast.expr, known: Mapping[str, Expression]) -> Term:
    name = type(operator).__name__
    return Term(_NAMES.get(name, name), tuple(_read(item, known) for item in operands))

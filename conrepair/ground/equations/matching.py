"""Find an equation in a graph."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir

from conrepair.ground.data.following import reached
from conrepair.ground.equations.expression import ALL, Expression, Term, computed, names_in
from conrepair.ground.onnx_graphs.building import axes_of
from conrepair.ground.onnx_graphs.defaults import defaults_of
from conrepair.ground.onnx_graphs.infer_shapes import rank_of
from conrepair.ground.onnx_graphs.initializers import constant_of
from conrepair.ground.operators.all_operators import OPERATORS

FLOATS = frozenset(onnx_ir.DataType[name] for name in ("FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE"))
_OTHER_ORDER = {"Add", "Mul"}
_CLOSE = 1e-6  # relative: numbers of networks are float32
_CLOSE_PRODUCT = 1e-5  # of several numbers, which are written with six digits at least
_OWN_AXIS = 13  # opset in which Softmax stopped to see its input as a matrix
_POWERS = {"Mul": (1, 1), "Div": (1, -1), "Reciprocal": (-1,), "Sqrt": (0.5,), "Square": (2,)}  # of operands
_DEEPEST = 7  # operators of a product within one another
_MOST_FACTORS = 8  # of an equation's products
_MOST_WAYS = 64  # to read one tensor as a product


@dataclass(frozen=True)
class Match:
    """A place in a graph that an expression matches.

    Attributes:
        values: Tensors by the expression's names.
        numbers: Attributes by the expression's names; axes and keepdims of what is summed.
        nodes: That compute it, the last one first.
    """

    values: Mapping[str, onnx_ir.Value] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    nodes: tuple[onnx_ir.Node, ...] = ()


def is_reduction(operator: str) -> bool:
    """Whether an operator's axes are its own to say."""
    return operator.startswith("Reduce")


def name_of(node: onnx_ir.Node) -> str:
    """A node's name; where it has none, its result's."""
    return node.name or node.outputs[0].name or ""


def sizes_of(sizes: Sequence[Expression], match: Match) -> list[int]:
    """What whole numbers of an expression are, where its names stand for what was found.

    Raises:
        KeyError: if a name isn't known yet.
        TypeError: if a tensor's size isn't.
    """

    def size(name: str) -> float:
        value = match.values.get(name[:-1])
        if value is None or value.shape is None:
            return float(match.numbers[name])
        return float(value.shape[int(name[-1])])  # type: ignore[arg-type]

    def call(term: Term, read: list[float]) -> float:
        return float(OPERATORS[term.operator].compute(*map(np.asarray, read)))

    return [int(computed(item, {name: size(name) for name in names_in(item)}, float, call)) for item in sizes]


def matched(expression: Expression, root: onnx_ir.Node, opset: int, *, real: bool = False) -> Match | None:
    """How an expression computes a node's result; None where it doesn't.

    Args:
        expression: What is looked for; `Square` is a product with itself, or a power of 2.
        root: The node; shapes are known.
        opset: Of its graph.
        real: Whether what is the same in real numbers, but rounded otherwise, is meant, too: products in any order,
            with their numbers at any place; quotients, powers and roots are products. No factor's name stands for a
            number then.
    """
    matcher = _Matcher(opset, real)
    found = next(matcher.matches(expression, root.outputs[0], Match()), None)
    return None if found is None else replace(found, nodes=tuple(_nodes(root, set(found.values.values()))))


def _nodes(root: onnx_ir.Node, ends: set[onnx_ir.Value]) -> Mapping[onnx_ir.Node, None]:
    """A node and those behind it, up to tensors that aren't computed of others, or end it."""

    def makers(node: onnx_ir.Node) -> list[onnx_ir.Node]:
        read = [value for value in node.inputs if value not in ends and constant_of(value) is None]
        found = [value.producer() for value in reversed(read) if value is not None]
        return [maker for maker in found if maker is not None]

    return reached([root], makers)


@dataclass(frozen=True)
class _Matcher:
    """Looks for expressions in a graph of an opset."""

    opset: int
    real: bool

    def matches(self, expression: Expression, value: onnx_ir.Value, so_far: Match) -> Iterator[Match]:
        """All ways in which a tensor is what an expression computes, with what names stand for already."""
        if isinstance(expression, float):
            numbers = constant_of(value)
            one = numbers is not None and (numbers.size == 1 or (numbers.size and not self.real))
            if numbers is not None and one and np.allclose(numbers.astype(float), expression, _CLOSE, 0):
                yield so_far
        elif isinstance(expression, str):
            if so_far.values.get(expression, value) is value:
                yield replace(so_far, values={**so_far.values, expression: value})
        elif isinstance(expression, tuple):
            yield from self._sizes(expression, value, so_far)
        elif expression is None:
            return  # no tensor is none
        elif expression.operator == "PerChannel":
            shape = (-1.0, *[1.0] * len(so_far.numbers.get("axes", ())))
            yield from self.matches(Term("Reshape", (*expression.operands, shape)), value, so_far)
        elif self.real and expression.operator in _POWERS:
            yield from self._products(expression, value, so_far)
        elif expression.operator == "Square":
            (operand,) = expression.operands
            for written in (Term("Mul", (operand, operand)), Term("Pow", (operand, 2.0))):
                yield from self.matches(written, value, so_far)
        else:
            yield from self._calls(expression, value, so_far)

    def _sizes(self, sizes: Sequence[Expression], value: onnx_ir.Value, so_far: Match) -> Iterator[Match]:
        """The same for whole numbers, which tell numbers of nodes that aren't known yet."""
        given = constant_of(value)
        if given is None or given.shape != (len(sizes),):
            return
        known = {*so_far.numbers, *(f"{name}{axis}" for name in so_far.values for axis in range(_MOST_FACTORS))}
        named = zip(sizes, given.tolist(), strict=True)
        told = {item: number for item, number in named if isinstance(item, str) and item not in known}
        found = replace(so_far, numbers={**so_far.numbers, **told})
        with contextlib.suppress(KeyError, TypeError):
            if np.array_equal(given, sizes_of(sizes, found)):
                yield found

    def _products(self, term: Term, value: onnx_ir.Value, so_far: Match) -> Iterator[Match]:
        """The same for a product, of factors in any order."""
        number, wanted = next(_ways(term, _said, _MOST_FACTORS))
        for own, given in itertools.islice(_ways(value, _computed, len(wanted)), _MOST_WAYS):
            if math.isclose(own, number, rel_tol=_CLOSE_PRODUCT) and len(given) == len(wanted):
                for order in itertools.permutations(given):
                    if [given[base] for base in order] == [*wanted.values()]:
                        yield from self._all(wanted, order, so_far)

    def _calls(self, term: Term, value: onnx_ir.Value, so_far: Match) -> Iterator[Match]:
        """The same for a call: the node that makes the value, then its operands from left to right."""
        node = value.producer()
        if node is None or node.op_type != term.operator or node.domain not in {"", "ai.onnx"} or value.index():
            return
        given = [*node.inputs]
        while given and (given[-1] is None or (is_reduction(term.operator) and len(given) > len(term.operands))):
            given.pop()
        numbers = _numbers(term, node, self.opset)
        if numbers is None or len(given) != len(term.operands):
            return
        if any(so_far.numbers.get(name, number) != number for name, number in numbers.items()):
            return
        for order in [given, given[::-1]] if term.operator in _OTHER_ORDER else [given]:
            yield from self._all(term.operands, order, replace(so_far, numbers={**so_far.numbers, **numbers}))

    def _all(
        self, wanted: Sequence[Expression] | Mapping[Expression, float], given: Sequence[Any], so_far: Match
    ) -> list[Match]:
        """The same for several tensors, each of an expression; None where an input is left out."""
        states = [so_far]
        for operand, item in zip(wanted, given, strict=True):
            if item is None or operand is None:
                states = states if item is operand else []
            else:
                states = [more for state in states for more in self.matches(operand, item, state)]
        return states


_Parts = tuple[str, Sequence[Any]] | float | None


def _ways(
    item: Any, parts: Callable[[Any], _Parts], most: int, deep: int = _DEEPEST
) -> Iterator[tuple[float, Mapping[Any, float]]]:
    """The products that something is in real numbers: a number, and factors with their powers; the longest one first.

    Args:
        item: A tensor, or an expression.
        parts: The operator and operands that make an item, or the number that it is.
        most: Factors; a product never has fewer than what it is made of.
        deep: Operators within one another that are looked into.
    """
    found = parts(item) if deep else None
    if isinstance(found, float):
        yield found, {}
        return
    operator, operands = found or ("", ())
    powers: Sequence[float] = _POWERS.get(operator, ())
    if operator == "Pow" and isinstance(exponent := parts(operands[1]), float):
        powers = (exponent,)
    if powers:
        # Of what is in a root the sign isn't known.
        read = [
            itertools.islice(_ways(operand, parts, most, deep - 1), _MOST_WAYS)
            if float(power).is_integer()
            else [(1.0, {operand: 1.0})]
            for operand, power in zip(operands, powers, strict=False)
        ]
        seen: set[frozenset[tuple[Any, float]]] = set()
        for factors in itertools.product(*read):
            total: Counter[Any] = Counter()
            for power, (_, bases) in zip(powers, factors, strict=True):
                total.update({base: power * own for base, own in bases.items()})
            if len(total) > most or (key := frozenset(total.items())) in seen:
                continue
            seen.add(key)
            with contextlib.suppress(OverflowError):  # of a constant's power: no equation has such a number
                yield math.prod(number**power for power, (number, _) in zip(powers, factors, strict=True)), total
    yield 1.0, {item: 1.0}


def _said(expression: Expression) -> _Parts:
    if isinstance(expression, Term):
        return expression.operator, expression.operands
    return expression if isinstance(expression, float) else None


def _computed(value: onnx_ir.Value | None) -> _Parts:
    tensor = None if value is None else onnx_ir.convenience.get_const_tensor(value)
    if value is None or tensor is not None:
        return (float(tensor.numpy().item()) or None) if tensor is not None and tensor.size == 1 else None
    node = value.producer()
    return None if node is None or node.domain not in {"", "ai.onnx"} else (node.op_type, node.inputs)


def _numbers(term: Term, node: onnx_ir.Node, opset: int) -> dict[str, Any] | None:
    """What a node's attributes give to an expression's names; None where they aren't what it says."""
    attributes = {name: item.value for name, item in {**defaults_of(node, opset), **node.attributes}.items()}
    result: dict[str, Any] = {}
    for name, wanted in term.attributes:
        if name == ALL:
            result[str(wanted)] = attributes
        elif name == wanted:
            result[name] = attributes[name]
        elif not _same(attributes.get(name), wanted):
            return None
    said = is_reduction(term.operator) and len(term.operands) > 1  # by the expression
    axes = [] if said else _axes(node, attributes, rank_of(node.inputs[0]), opset)
    if axes is None:
        return None
    return result | {"axes": axes, "keepdims": attributes.get("keepdims", 1)} if axes else result


def _same(given: Any, wanted: Any) -> bool:
    if isinstance(given, float) and isinstance(wanted, float):
        return math.isclose(given, wanted, rel_tol=_CLOSE)
    return bool((tuple(given) if isinstance(wanted, tuple) and given is not None else given) == wanted)


def _axes(node: onnx_ir.Node, given: Mapping[str, Any], rank: int | None, opset: int) -> list[int] | None:
    """Over which axes a node takes its sums, from the front; none where it takes none, None where it isn't known."""
    if rank is None:
        return None if is_reduction(node.op_type) or node.op_type.endswith(("Normalization", "Softmax")) else []
    match node.op_type:
        case "LayerNormalization" | "RMSNormalization":
            return list(range(given["axis"] % rank, rank))
        case "InstanceNormalization":
            return list(range(2, rank))
        case "MeanVarianceNormalization":
            return [axis % rank for axis in given.get("axes", (0, 2, 3))]
        case "Softmax" | "LogSoftmax" | "LpNormalization":
            axis = given["axis"] % rank
            own = opset >= _OWN_AXIS or node.op_type == "LpNormalization"
            return [axis] if own else list(range(axis, rank))
    if not is_reduction(node.op_type):
        return []
    found = axes_of(node, rank)
    if found is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        return None
    return found or (None if given.get("noop_with_empty_axes") or not rank else list(range(rank)))

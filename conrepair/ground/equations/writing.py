"""Write an expression into a graph in a node's place, or compute nodes in another element type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy.typing as npt
import onnx
import onnx_ir

from conrepair.ground.equations.expression import ALL, Term, computed, horner, names_in, parse
from conrepair.ground.equations.matching import FLOATS, Match, is_reduction, name_of, sizes_of
from conrepair.ground.onnx_graphs.building import Builder
from conrepair.ground.onnx_graphs.computing import computing
from conrepair.ground.runtime.errors import ConversionError

# What is written is no form itself (-1 + e^x in place of e^x - 1), so that it isn't found again.
_TERMS, _MORE_TERMS = 9, 18  # of a series: enough for float32, for float64


def _expm1(terms: int) -> str:
    series = horner("a", [1 / math.factorial(power + 1) for power in range(terms)])
    return f"Where(Abs(a) < 0.5, a * ({series}), -1 + Exp(a))"


def _log1p(terms: int) -> str:
    """2 atanh of a / (2 + a), which is at most 1/3; neither 1 + a nor a logarithm is computed where a is small."""
    series = horner("q", [2 / (2 * power + 1) for power in range(terms)])
    return f"s = a / (2 + a); q = s * s; Where(Abs(a) < 1.01, s * ({series}), Log(a - -1))"


def _small_erf(terms: int) -> str:
    factors = [
        2 / math.sqrt(math.pi) * (-1) ** power / math.factorial(power) / (2 * power + 1) for power in range(terms)
    ]
    return f"q = a * a; a * ({horner('q', factors)})"


def _exp(terms: int) -> str:
    """2^n e^r with log 2 in two constants, of which the first has few bits: n times it is exact."""
    series = horner("r", [1 / math.factorial(power) for power in range(terms)])
    return (
        f"h = Max(Min(a, 104), -104); n = Floor(h * {1 / math.log(2)!r} + 0.5); half = Floor(n * 0.5); "
        f"r = (h - n * 0.693145751953125) - n * {math.log(2) - 0.693145751953125!r}; "
        f"({series}) * Pow(2, half) * Pow(2, n - half)"
    )


# What isn't an operator and is written by them: of one operand, `a`, and with so many terms of a series.
_MACROS: Mapping[str, Callable[[int], str]] = {
    "Square": lambda _: "a * a",
    "Expm1": _expm1,
    "Log1p": _log1p,
    "SmallErf": _small_erf,  # for |a| up to 0.5
    "TwoPartExp": _exp,
    "OneConstantExp": lambda _: f"n = Floor(a * {1 / math.log(2)!r} + 0.5); Exp(a - n * {math.log(2)!r}) * Pow(2, n)",
    "Rough": lambda _: "c = a * 4097; c - (c - a)",  # 12 bits
}


class _Writer:
    """Makes nodes of expressions; what stands there twice is computed once."""

    def __init__(self, build: Builder, match: Match, dtype: onnx_ir.DataType, opset: int) -> None:
        self._build, self._match, self._dtype, self._opset = build, match, dtype, opset
        self._terms = _MORE_TERMS if dtype == onnx_ir.DataType.DOUBLE else _TERMS

    def value(self, text: str, values: Mapping[str, onnx_ir.Value]) -> onnx_ir.Value:
        """The tensor that an expression computes, of values by name and of the match's numbers."""
        expression, numbers = parse(text), self._match.numbers
        known = {
            name: values[name] if name in values else self._number(float(numbers[name]))
            for name in names_in(expression)
        }
        return computed(expression, known, self._number, self._call)

    def reduced(self, operator: str, source: onnx_ir.Value, keepdims: int) -> onnx_ir.Value:
        """Over the axes of what was found, which are an attribute or an input."""
        axes = self._match.numbers["axes"]
        if "axes" in self._schema(operator).attributes:
            return self._build.op(operator, [source], axes=axes, keepdims=keepdims)
        return self._build.op(operator, [source, self._build.constant(axes)], keepdims=keepdims)

    def _number(self, number: Any) -> onnx_ir.Value:
        if isinstance(number, tuple):
            return self._build.constant(sizes_of(number, self._match))
        return self._build.constant(number, self._dtype.numpy())

    def _call(self, term: Term, read: Sequence[onnx_ir.Value]) -> onnx_ir.Value:
        match, build, operator = self._match, self._build, term.operator
        if operator in _MACROS:
            return self.value(_MACROS[operator](self._terms), {"a": read[0]})
        if operator == "PerChannel":
            return build.op("Reshape", [*read, build.constant([-1, *[1] * (len(match.numbers["axes"]))])])
        if is_reduction(operator) and len(read) == 1:
            return self.reduced(operator, read[0], 1)
        self._schema(operator)
        given: dict[str, Any] = {}
        for name, item in term.attributes:
            known = match.numbers.get(str(item), item)
            given |= known if name == ALL else {name: known}
        return build.op(operator, read, **given)

    def _schema(self, operator: str) -> Any:
        try:
            return onnx.defs.get_schema(operator, self._opset, "")
        except onnx.defs.SchemaError:
            raise ConversionError(f"opset {self._opset} has no {operator}. Raise the model's opset first") from None


def written(text: str, match: Match, opset: int) -> None:
    """Write an expression in the place of what was found, in place.

    Args:
        text: The expression.
        match: What its names stand for, and the nodes that go, the last one first.
        opset: Of the model.

    Raises:
        ConversionError: if the opset has no words for it, or the element type isn't known.
    """
    build = _builder(match.nodes[0])
    writer = _Writer(build, match, _type_of(match.nodes[0], *match.nodes[0].inputs), opset)
    result = writer.value(text, match.values)
    if not match.numbers.get("keepdims", 1):
        result = writer.reduced("ReduceMax", result, 0)  # of one each
    _replace(build, result, match.nodes)


def model_of(
    text: str, values: Mapping[str, npt.NDArray[Any]], numbers: Mapping[str, Any], opset: int
) -> onnx.ModelProto:
    """A model that computes an expression, in the element type of the first value.

    Args:
        text: The expression.
        values: Arrays like those that it's going to read, by the expression's names.
        numbers: Attributes and axes by its other names.
        opset: Of the model.

    Raises:
        ConversionError: see `written`.
    """
    root = onnx.helper.make_node("Identity", [next(iter(values))], ["result"])
    model = onnx_ir.from_proto(computing([root], values, ["result"], {"": opset}))
    inputs, (end,) = model.graph.inputs, model.graph.outputs
    end.dtype = inputs[0].dtype
    written(text, Match({str(value.name): value for value in inputs}, numbers, (model.graph[0],)), opset)
    return onnx_ir.to_proto(model)


def widened(nodes: Sequence[onnx_ir.Node], to: onnx_ir.DataType, opset: int) -> None:
    """Compute nodes in another element type, in place, between casts; from one to another nothing is rounded.

    Args:
        nodes: The last one first.
        to: The type.
        opset: Of the model.

    Raises:
        ConversionError: see `check_takes`.
    """
    known: dict[str | None, onnx_ir.Value | None] = {}
    back = []
    for node in reversed(nodes):
        own = check_takes(node, to, opset)
        build, read = _builder(node), []
        for value in node.inputs:
            if value is not None and value.name not in known and value.dtype == own:
                known[value.name] = build.op("Cast", [value], to=int(to))
            read.append(None if value is None else known.get(value.name, value))
        attributes = {name: item.value for name, item in node.attributes.items()}
        if attributes.get("to") == own:
            attributes["to"] = int(to)
        wide = known[node.outputs[0].name] = build.op(node.op_type, read, **attributes)
        back.append(build.op("Cast", [wide], to=int(own)))
        build.finish(back[-1])
    for value in back:
        cast = value.producer()
        if cast is not None and cast.graph is not None and not (value.uses() or value.is_graph_output()):
            cast.graph.remove(cast, safe=True)


def check_takes(node: onnx_ir.Node, to: onnx_ir.DataType, opset: int) -> onnx_ir.DataType:
    """See that a node can be computed in another element type; returns its own.

    Raises:
        ConversionError: if its own isn't known, the operator isn't defined for the other, or makes more results.
    """
    own = _type_of(node)
    if any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
        raise ConversionError(f"{node.op_type} '{name_of(node)}': its other results are read, too")
    ports, kind = onnx.defs.get_schema(node.op_type, opset, "").inputs, to.name.lower()
    read = [
        ports[min(index, len(ports) - 1)] for index, value in enumerate(node.inputs) if value and value.dtype == own
    ]
    if any(f"tensor({kind})" not in port.types for port in read):
        raise ConversionError(f"{node.op_type} '{name_of(node)}' isn't defined for {kind}")
    if any(item.type == onnx_ir.AttributeType.TENSOR for item in node.attributes.values()):
        raise ConversionError(f"{node.op_type} '{name_of(node)}' has numbers of its own element type")
    return own


def _builder(root: onnx_ir.Node) -> Builder:
    """Its names begin with the node's too, which was written here where its result had another form before."""
    return Builder(root, f"{root.outputs[0].name}/{root.name}" if root.name else None)


def _replace(build: Builder, result: onnx_ir.Value, nodes: Sequence[onnx_ir.Node]) -> None:
    """Put a tensor in the place of the first node's, and remove those behind it that nobody reads any more."""
    build.finish(result)
    for node in nodes[1:]:
        if node.graph is not None and not any(value.uses() or value.is_graph_output() for value in node.outputs):
            node.graph.remove(node, safe=True)


def _type_of(root: onnx_ir.Node, *others: onnx_ir.Value | None) -> onnx_ir.DataType:
    """The real type of a node's result, or else of the first of some others that has one."""
    known = [value.dtype for value in (root.outputs[0], *others) if value is not None]
    dtype = next((dtype for dtype in known if dtype in FLOATS), None)
    if dtype is None:
        raise ConversionError(
            f"{root.op_type} '{name_of(root)}': the element type of its result isn't known, or not real"
        )
    return dtype

"""Subgraphs of a TFLite file that operators call: bodies of loops, branches; and the constants that these hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conrepair.formats.tflite.load.screening import called_subgraphs, has_numbers, kind_of

__all__ = ["InnerConstant", "called_subgraphs", "handed_on", "inner_constants"]

_OPERANDS = {"FULLY_CONNECTED": ("input", "weight", "bias")}
_LOOPS = {"WHILE", "STABLEHLO_WHILE"}
_INITIALIZING = "CALL_ONCE"  # what it fills are variables, which others may assign: no constants


@dataclass(frozen=True)
class InnerConstant:
    """A constant of a subgraph.

    Attributes:
        subgraph: Its index.
        tensor: Index of the tensor there.
        reader: The first operator that reads it.
    """

    subgraph: int
    tensor: int
    reader: Any


def inner_constants(model: Any, operator: Any) -> dict[str, InnerConstant]:
    """The constants of all subgraphs that an operator calls, and of those that are called there.

    Args:
        model: The file's tables.
        operator: Of any of its subgraphs.

    Returns:
        By what they are: that doesn't change with the names that a conversion gives, and is the same in both graphs
        of a file, the one that is observed and the one that is edited.
    """
    if kind_of(model, operator) == _INITIALIZING:
        return {}
    found: dict[str, InnerConstant] = {}
    known: set[tuple[int, int]] = set()
    for role, constant in _constants(model, operator, "", ()):
        if (constant.subgraph, constant.tensor) not in known:
            known.add((constant.subgraph, constant.tensor))
            found[role] = constant
    return found


def handed_on(model: Any, operator: Any) -> frozenset[int]:
    """The results of a loop that are what it reads: no turn changes them, so they say nothing of it."""
    options = operator.builtinOptions or operator.builtinOptions2
    body = getattr(options, "bodySubgraphIndex", None)
    if body is None or kind_of(model, operator) not in _LOOPS:
        return frozenset()
    graph = model.subgraphs[body]
    pairs = zip(graph.inputs, graph.outputs, operator.outputs, strict=True)
    return frozenset(int(result) for given, made, result in pairs if given == made)


def _constants(
    model: Any, operator: Any, behind: str, calling: tuple[int, ...]
) -> Iterator[tuple[str, InnerConstant]]:
    for index, what in called_subgraphs(operator).items():
        if index in calling:
            continue
        graph = model.subgraphs[index]
        for place, inner in enumerate(graph.operators or []):
            kind = kind_of(model, inner) or "operator"
            where = f"{kind} {place} in {what}{behind}"
            for position, tensor in enumerate([] if inner.inputs is None else map(int, inner.inputs)):
                if tensor >= 0 and not graph.tensors[tensor].isVariable and has_numbers(model, graph.tensors[tensor]):
                    operands = _OPERANDS.get(kind, ())
                    operand = operands[position] if position < len(operands) else f"operand {position}"
                    yield f"{operand} of {where}", InnerConstant(index, tensor, inner)
            yield from _constants(model, inner, f" of {where}", (*calling, index))

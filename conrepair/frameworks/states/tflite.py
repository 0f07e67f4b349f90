"""Variables that a TFLite model changes when it's called, and that the next call goes on from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["states_of"]


def states_of(model: Any) -> tuple[str, ...]:
    """Names of the variables that a call assigns; those that are only set once, at its first, are weights.

    Args:
        model: A `tflite.Model`.
    """
    import tflite

    operators = tflite.BuiltinOperator
    codes = (model.OperatorCodes(place) for place in range(model.OperatorCodesLength()))
    if not any(code.BuiltinCode() == operators.VAR_HANDLE for code in codes):
        return ()
    graphs = [model.Subgraphs(place) for place in range(model.SubgraphsLength())]
    once = set()
    for _, operator in _operators(model, graphs, operators.CALL_ONCE):
        options = tflite.CallOnceOptions()
        options.Init(operator.BuiltinOptions().Bytes, operator.BuiltinOptions().Pos)
        once.add(options.InitSubgraphIndex())
    names: dict[tuple[int, int], str] = {}
    for place, operator in _operators(model, graphs, operators.VAR_HANDLE):
        handle = tflite.VarHandleOptions()
        handle.Init(operator.BuiltinOptions().Bytes, operator.BuiltinOptions().Pos)
        names[place, operator.Outputs(0)] = (handle.SharedName() or b"").decode(errors="replace")
    assigned = [
        names.get((place, operator.Inputs(0)), "a variable")
        for place, operator in _operators(model, graphs, operators.ASSIGN_VARIABLE)
        if place not in once
    ]
    return tuple(dict.fromkeys(assigned))


def _operators(model: Any, graphs: list[Any], code: int) -> Iterator[tuple[int, Any]]:
    """All operators of a kind, each with the place of its graph."""
    for place, graph in enumerate(graphs):
        for number in range(graph.OperatorsLength()):
            operator = graph.Operators(number)
            if model.OperatorCodes(operator.OpcodeIndex()).BuiltinCode() == code:
                yield place, operator

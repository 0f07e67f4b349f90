"""Variables that a TFLite model changes when it's called, and that the next call goes on from."""

from __future__ import annotations

from typing import Any

from conrepair.frameworks.screening.tflite import kind_of

__all__ = ["states_of"]


def states_of(model: Any) -> tuple[str, ...]:
    """Names of the variables that a call assigns; those that are only set once, at its first, are weights.

    Args:
        model: A file's tables.
    """
    calls = [
        (place, kind_of(model, operator), operator)
        for place, graph in enumerate(model.subgraphs)
        for operator in graph.operators or []
    ]
    once = {operator.builtinOptions.initSubgraphIndex for _, kind, operator in calls if kind == "CALL_ONCE"}
    names = {
        (place, int(operator.outputs[0])): (operator.builtinOptions.sharedName or b"").decode(errors="replace")
        for place, kind, operator in calls
        if kind == "VAR_HANDLE"
    }
    assigned = [
        names.get((place, int(operator.inputs[0])), "a variable")
        for place, kind, operator in calls
        if kind == "ASSIGN_VARIABLE" and place not in once
    ]
    return tuple(dict.fromkeys(assigned))

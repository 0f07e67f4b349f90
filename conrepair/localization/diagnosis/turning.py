"""Transpositions around an operator that only knows one axis: it's the same operator along another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conrepair.graph.layer_graph import LayerGraph
from conrepair.localization.diagnosis.steps import Step

__all__ = ["unturned"]

_ALONG_AXIS = {"Softmax", "LogSoftmax", "Hardmax"}


def unturned(steps: Sequence[Step], graph: LayerGraph) -> list[Step]:
    """Read such operators without transpositions, where those behind undo those in front.

    Args:
        steps: Of a side, in order.
        graph: Of the network.
    """
    result = list(steps)
    for first in steps:
        second = _reader(result, first, graph)
        last = None if second is None else _reader(result, second, graph)
        whole = None if second is None or last is None else _along_another_axis(first, second, last)
        if whole is not None:
            result = [whole if item is second else item for item in result if item is not first and item is not last]
    return result


def _along_another_axis(first: Step, second: Step, last: Step) -> Step | None:
    perm, back, axis = _perm(first), _perm(last), second.attributes.get("axis")
    if perm is None or back is None or second.op not in _ALONG_AXIS or not isinstance(axis, int):
        return None
    if [perm[place] for place in back] != list(range(len(perm))):
        return None
    return replace(
        second,
        attributes={**second.attributes, "axis": perm[axis]},
        nodes=(*second.nodes, *first.nodes, *last.nodes),
        inputs=first.inputs,
        outputs=last.outputs,
    )


def _perm(step: Step) -> tuple[int, ...] | None:
    perm = step.attributes.get("perm") if step.op == "Transpose" else None
    return tuple(int(axis) for axis in perm) if isinstance(perm, tuple) else None


def _reader(steps: Sequence[Step], step: Step, graph: LayerGraph) -> Step | None:
    """The only step that reads what another gives."""
    if not graph.read_once(step.outputs[0]):
        return None
    return next((other for other in steps if other.inputs == step.outputs), None)

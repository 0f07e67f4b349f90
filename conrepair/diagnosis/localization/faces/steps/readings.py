"""A region's nodes read as steps, as they are written or fused to the few that say the same, and those paired."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from conrepair.diagnosis.localization.faces.region import Side
from conrepair.diagnosis.localization.faces.steps.folding import (
    LINEAR,
    Fold,
    affine,
    channelwise,
    fold_batches,
    fold_channelwise,
    fold_linear,
    fold_pad,
)
from conrepair.diagnosis.localization.faces.steps.functions import is_elementwise
from conrepair.diagnosis.localization.faces.steps.steps import CASTS, MOVES, Step, function_step, step_of
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.layer_graph import LayerGraph, Node
from conrepair.ground.graph.operators import OPERATORS

# Transpositions around an operator that only knows one axis: it's the same operator along another one.

_ALONG_AXIS = {"Softmax", "LogSoftmax", "Hardmax"}


def _unturned(steps: Sequence[Step], graph: LayerGraph) -> list[Step]:
    """Read such operators without transpositions, where those behind undo those in front.

    Args:
        steps: Of a side, in order.
        graph: Of the network.
    """
    result = list(steps)
    for second in [step for step in steps if step.op in _ALONG_AXIS]:
        first = next((step for step in result if step.outputs == second.inputs), None)
        last = next((step for step in result if step.inputs == second.outputs), None)
        if first is None or last is None or not all(graph.read_once(step.outputs[0]) for step in (first, second)):
            continue
        (perm, back), axis = map(_perm, (first, last)), second.attributes.get("axis")
        if isinstance(axis, int) and perm and back and [perm[place] for place in back] == list(range(len(perm))):
            whole = replace(
                second,
                attributes={**second.attributes, "axis": perm[axis]},
                nodes=(*second.nodes, *first.nodes, *last.nodes),
                inputs=first.inputs,
                outputs=last.outputs,
            )
            result = [whole if item is second else item for item in result if item is not first and item is not last]
    return result


def _perm(step: Step) -> tuple[int, ...]:
    """Of a transposition; () of other operators."""
    perm = step.attributes.get("perm") if step.op == "Transpose" else None
    return tuple(int(axis) for axis in perm) if isinstance(perm, tuple) else ()


_COMPLETING = {"BatchNormalization", "BatchToSpace"}
_LAYERS = {*LINEAR, "BlockConv"}


def as_written(side: Side) -> list[Step]:
    """Each node a step."""
    return [step_of(node) for node in side.nodes]


def with_functions(side: Side) -> list[Step]:
    """Elementwise pieces as functions, dilated convolutions whole, each other node a step."""
    return _computing(_folded(_functions(as_written(side), side), side, fold_batches), side)


def fused(side: Side) -> list[Step]:
    """As few steps as possible: elementwise pieces as functions, folded normalizations, biases and pads."""
    return _all_folded(_functions(as_written(side), side), side)


def rearranged(side: Side) -> list[Step]:
    """The same, and what lies between a layer and what completes it (a bias, a normalization) is read behind both.

    A clipping that a converter has put there would hide that the layer is the same one.
    """
    return _all_folded(_completed_first(_functions(as_written(side), side), side.graph), side)


def normalized(side: Side) -> list[Step]:
    """As fused, with a normalization, and what else scales and shifts channels, as one step."""
    return _folded([channelwise(step) for step in fused(side)], side, fold_channelwise)


def together(nodes: Sequence[Node], graph: LayerGraph) -> list[Step]:
    """A chain of nodes as the one step that it is (a clamp is a Max and a Min), or else as it's written.

    Args:
        nodes: In order, each reading the one before.
        graph: That they are of.
    """
    begins = tuple(filter(None, nodes[0].inputs))
    chain = Side(graph, tuple(nodes), begins, nodes[-1].outputs[0])
    steps = fused(chain)
    return steps if len(steps) == 1 else as_written(chain)


def _all_folded(steps: list[Step], side: Side) -> list[Step]:
    for fold in (fold_batches, fold_pad, fold_linear):
        steps = _folded(steps, side, fold)
    return _computing(steps, side)


def _completed_first(steps: Sequence[Step], graph: LayerGraph) -> list[Step]:
    """Exchange steps that keep shapes with the step behind them that completes the layer in front."""
    result = list(steps)
    place = 0
    while place < len(result):
        between = result[place]
        later = next((at for at in range(place + 1, len(result)) if _completes(result[at], between, graph)), None)
        if later is None or not _behind_layer(between, result[:place]):
            place += 1
            continue
        last, middle = result[later], between.outputs[0]
        result[place] = replace(last, inputs=between.inputs, outputs=(middle,))
        result[later] = replace(between, inputs=(middle,), outputs=last.outputs)
        place = max(place - 1, 0)
    return result


def _completes(step: Step, between: Step, graph: LayerGraph) -> bool:
    name = between.outputs[0]
    if step.inputs != (name,) or not graph.read_once(name):
        return False
    size = math.prod(step.parameters["operand"].shape) if "operand" in step.parameters else 1
    return step.op in _COMPLETING or (size > 1 and affine(step, size) is not None)


def _behind_layer(step: Step, before: Sequence[Step]) -> bool:
    """Whether a step takes each number of a layer's result for itself."""
    if len(step.inputs) != 1 or (step.values is None and step.op not in CASTS):
        return False
    first = next((other for other in before if step.inputs[0] in other.outputs), None)
    return first is not None and (first.op in _LAYERS | _COMPLETING or _behind_layer(first, before))


def _computing(steps: Sequence[Step], side: Side) -> list[Step]:
    return [step for step in _unturned(steps, side.graph) if step.op != "Identity"]


def _functions(steps: Sequence[Step], side: Side) -> list[Step]:
    """Merge elementwise nodes that have one input together."""
    producers = {name: step for step in steps for name in step.outputs}
    merged: dict[int, Step] = {}
    gone: set[int] = set()
    for place in reversed(range(len(steps))):
        if place in gone or not is_elementwise(steps[place].nodes[0]):
            continue
        group = _grown(steps[place], producers, side)
        if group is None:
            continue
        nodes = [step.nodes[0] for step in steps if step in group]
        begin = next(iter(_outside(group)))
        whole = function_step(nodes, begin, steps[place].outputs[0])
        if whole is None:
            continue
        gone.update(index for index, step in enumerate(steps) if step in group)
        gone.discard(place)
        merged[place] = whole
    return [merged.get(place, step) for place, step in enumerate(steps) if place not in gone]


def _grown(last: Step, producers: Mapping[str, Step], side: Side) -> list[Step] | None:
    """The largest group that ends at a step and reads one tensor."""
    group = [last]
    best = [last] if len(_outside(group)) == 1 else None
    while True:
        outputs = {name for step in group for name in step.outputs}
        for name in _outside(group):
            before = producers.get(name)
            if before is None or not is_elementwise(before.nodes[0]) or name in side.begins:
                continue
            readers = side.graph.consumers.get(name, ())
            if name not in side.graph.outputs and all(set(node.outputs) <= outputs for node in readers):
                group.append(before)
                break
        else:
            return best
        if len(_outside(group)) == 1:
            best = list(group)


def _outside(group: Iterable[Step]) -> dict[str, None]:
    group = list(group)
    inside = {name for step in group for name in step.outputs}
    return {name: None for step in group for name in step.inputs if name and name not in inside}


def _folded(steps: Sequence[Step], side: Side, fold: Fold) -> list[Step]:
    """Fold pairs of a step and its only reader until nothing more can be."""
    result = list(steps)
    place = 0
    while place < len(result):
        second = result[place]
        first = next((step for step in result[:place] if second.inputs and second.inputs[0] in step.outputs), None)
        both = None
        if first is not None and len(second.inputs) == 1 and side.graph.read_once(first.outputs[0]):
            both = fold(first, second)
        if both is None or first is None:
            place += 1
            continue
        result[place] = both
        result.remove(first)
        place = max(place - 1, 0)
    return result


def pair_steps(source: Sequence[Step], target: Sequence[Step]) -> list[tuple[Step | None, Step | None]]:
    """Pair in order.

    Returns:
        Pairs; None on one side for what only the other has.

    Source:
        Needleman and Wunsch, A general method applicable to the search for similarities, 1970.
    """
    rows, columns = len(source), len(target)
    cost = np.zeros((rows + 1, columns + 1))
    cost[1:, 0] = np.cumsum([_gap(step) for step in source])
    cost[0, 1:] = np.cumsum([_gap(step) for step in target])
    for row in range(rows):
        for column in range(columns):
            cost[row + 1, column + 1] = min(
                cost[row, column] + _distance(source[row], target[column]),
                cost[row, column + 1] + _gap(source[row]),
                cost[row + 1, column] + _gap(target[column]),
            )
    pairs: list[tuple[Step | None, Step | None]] = []
    row, column = rows, columns
    while row or column:
        here = cost[row, column]
        if (
            row
            and column
            and np.isclose(here, cost[row - 1, column - 1] + _distance(source[row - 1], target[column - 1]))
        ):
            row, column = row - 1, column - 1
            pairs.append((source[row], target[column]))
        elif row and np.isclose(here, cost[row - 1, column] + _gap(source[row - 1])):
            row -= 1
            pairs.append((source[row], None))
        else:
            column -= 1
            pairs.append((None, target[column]))
    return pairs[::-1]


def paired_nodes(source: Side, target: Side) -> Iterator[tuple[Node, Node]]:
    """The nodes of both sides that belong together, as they're written.

    Args:
        source: Of the network that is right.
        target: Of the other one.
    """
    for ours, theirs in pair_steps(as_written(source), as_written(target)):
        if ours is not None and theirs is not None:
            yield ours.nodes[0], theirs.nodes[0]


def of_one_family(one: str, two: str) -> bool:
    """Whether operators do the like, so that one can stand in the other's place."""
    return _family(one) == _family(two)


def _family(operator: str) -> str:
    """From afar: rectifiers and sigmoids, or what's written for them, are all functions."""
    if operator in {"Function", "Identity"}:
        return "function"
    family = OPERATORS[operator].family.partition(".")[0] if operator in OPERATORS else ""
    return operator if family in {"", "move"} else family


def _gap(step: Step) -> float:
    return naming.MOVE_GAP if step.op in MOVES else naming.GAP


def _distance(one: Step, two: Step) -> float:
    if one.op == two.op:
        shapes = [{role: item.shape for role, item in step.parameters.items()} for step in (one, two)]
        return 0.0 if shapes[0] == shapes[1] else 0.2
    if of_one_family(one.op, two.op):
        return naming.REPLACED
    return 10.0 if MOVES & {one.op, two.op} else naming.OTHER

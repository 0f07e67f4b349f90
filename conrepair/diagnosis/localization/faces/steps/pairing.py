"""Pair the steps of two regions: the cheapest edit that makes the one sequence the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from conrepair.diagnosis.localization.faces.region import Side
from conrepair.diagnosis.localization.faces.steps.readings import as_written
from conrepair.diagnosis.localization.faces.steps.steps import MOVES, Step
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.layer_graph import Node
from conrepair.ground.graph.operators import OPERATORS


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

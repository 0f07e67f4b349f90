from __future__ import annotations

import numpy as np
import pytest

from conrepair.ground.graph.input_ranges import intervals
from conrepair.ground.graph.layer_graph import Node, Parameter


def node(op: str, operand: object = None, *, first: bool = False, inputs: tuple[str, ...] = ("x",)) -> Node:
    numbers = np.asarray(operand, np.float32)
    held = {} if operand is None else {"operand": Parameter("", numbers.shape, "float32", lambda: numbers)}
    return Node("n", "n", op, op, inputs, ("y",), {"constant_first": first}, held)


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (node("Mul", 2), (-2, 6)),
        (node("Mul", [-1, 2]), (-3, 6)),
        (node("Add", [1, -1]), (-2, 4)),
        (node("Sub", 1), (-2, 2)),
        (node("Sub", 1, first=True), (-2, 2)),
        (node("Div", 2), (-0.5, 1.5)),
        (node("Div", 2, first=True), None),
        (node("Div", 0), None),
        (node("Relu"), (0, 3)),
        (node("QuantizeLinear"), (-1, 3)),
        (node("Conv"), None),
        (node("Add", inputs=("x", "z")), None),
    ],
)
def test_what_becomes_of_a_range(read: Node, expected: tuple[float, float] | None) -> None:
    assert intervals([read], {"x": (-1.0, 3.0)}).get("y") == expected


def test_what_is_only_moved_had_the_same_range() -> None:
    assert intervals([node("QuantizeLinear")], {"y": (-1.0, 3.0)})["x"] == (-1.0, 3.0)
    assert "x" not in intervals([node("MaxPool")], {"y": (-1.0, 3.0)})

"""One node of a decomposed activation is changed: which one is told, and that it's right undone."""

from __future__ import annotations

from pathlib import Path

import pytest
from elementwise_pieces import graph_of

from conrepair.diagnosis.localization.faces.changes import Change, fixing_mutation
from conrepair.diagnosis.localization.faces.steps.functions import evaluate
from conrepair.ground.graph.layer_graph import LayerGraph

GELU = [
    "[div] d = Div (x, root2)",
    "[erf] e = Erf (d)",
    "[add] a = Add (e, one)",
    "[mul] m = Mul (x, a)",
    "[half] y = Mul (m, half)",
]


def repaired(lines: list[str], folder: Path) -> Change | None:
    """What's found in a chain that should be the exact GELU."""
    right = opened(GELU, folder / "right")
    wrong = opened(lines, folder / "wrong")
    wanted = evaluate(right.nodes, "x", "y")
    assert wanted is not None
    return fixing_mutation(wrong.nodes, "x", "y", wanted)


def opened(lines: list[str], folder: Path) -> LayerGraph:
    folder.mkdir()
    return graph_of("\n".join(lines), folder)


def changed(old: str, new: str) -> list[str]:
    lines = [line.replace(old, new) for line in GELU]
    assert lines != GELU
    return lines


@pytest.mark.parametrize(
    ("old", "new", "node", "operator"),
    [
        ("Div (x, root2)", "Div (root2, x)", "div", "Div"),
        ("Erf", "Tanh", "erf", "Erf"),
        ("Add (e, one)", "Sub (e, one)", "add", "Add"),
        ("Mul (x, a)", "Add (x, a)", "mul", "Mul"),
        ("Mul (m, half)", "Div (m, half)", "half", "Mul"),
    ],
)
def test_a_changed_node_is_named(old: str, new: str, node: str, operator: str, tmp_path: Path) -> None:
    found = repaired(changed(old, new), tmp_path)
    assert found is not None
    assert ([item.layer for item in found.nodes], found.other and found.other.op) == ([node], operator)


@pytest.mark.parametrize("inserted", ["Relu (d)", "Clip (d, , three)", "Mul (d, two)", "Neg (d)"])
def test_a_node_too_many_is_named(inserted: str, tmp_path: Path) -> None:
    lines = [GELU[0], f"[more] more = {inserted}", GELU[1].replace("(d)", "(more)"), *GELU[2:]]
    found = repaired(lines, tmp_path)
    assert found is not None
    assert ([item.layer for item in found.nodes], found.other) == (["more"], None)


@pytest.mark.parametrize("place", ["x", "y"])
def test_a_node_too_many_at_an_end(place: str, tmp_path: Path) -> None:
    if place == "x":
        lines = ["[more] z = Mul (x, two)", *(line.replace("(x,", "(z,") for line in GELU)]
    else:
        lines = [*GELU[:-1], "[half] z = Mul (m, half)", "[more] y = Clip (z, , three)"]
    found = repaired(lines, tmp_path)
    assert found is not None
    assert ([item.layer for item in found.nodes], found.other) == (["more"], None)


@pytest.mark.parametrize("before", ["x", "d", "y"])
def test_several_nodes_too_many_are_named_together(before: str, tmp_path: Path) -> None:
    extra = ["[low] u = Max ({}, fifth)", "[high] v = Min (u, three)", "[twice] w = Mul (v, two)"]
    if before == "y":
        lines = [*GELU[:-1], "[half] z = Mul (m, half)", *(line.format("z") for line in extra)]
        lines[-1] = lines[-1].replace("w = ", "y = ")
    elif before == "x":
        lines = [*(line.format("x") for line in extra), *(line.replace("(x,", "(w,") for line in GELU)]
    else:
        lines = [GELU[0], *(line.format("d") for line in extra), GELU[1].replace("(d)", "(w)"), *GELU[2:]]
    found = repaired(lines, tmp_path)
    assert found is not None
    assert [item.layer for item in found.nodes] == ["low", "high", "twice"]
    assert found.other is None


def test_two_changes_are_not_explained_by_one(tmp_path: Path) -> None:
    assert repaired(["[a] z = Exp (x)", "[b] w = Abs (z)", "[c] y = Sqrt (w)"], tmp_path) is None

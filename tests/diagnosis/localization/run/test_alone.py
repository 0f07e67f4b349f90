"""What pieces of a changed target can be looked at alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from random_graphs import graph_of

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.run.alone import kept_pieces
from conrepair.ground.graph.layer_graph import LayerGraph

SHAPE = (2, 3, 4)
Nodes = Sequence[tuple[str, str, Sequence[str], Sequence[str]]]

HEAD = [("a", "Sin", ["x"], ["a"])]
TAIL = [("c", "Cos", ["b"], ["c"]), ("y", "Exp", ["c"], ["y"])]
BEFORE = [*HEAD, ("b", "Tanh", ["a"], ["b"]), *TAIL]


def graph(nodes: Nodes) -> LayerGraph:
    return graph_of(["x"], nodes, ["y"], SHAPE)


def pairs(*names: str) -> list[Pair]:
    return [Pair(name, name, layouts(SHAPE, SHAPE)[0], 1.0, "") for name in names]


def kept(
    after: Nodes,
    ends: Sequence[str] = ("b",),
    cuts: Sequence[str] = ("a", "b", "c", "y"),
    before: Nodes = tuple(BEFORE),
) -> list[list[str]]:
    found = kept_pieces(graph(before), graph(after), pairs(*cuts), pairs(*ends))
    return [] if found is None else [[pair.target for pair in side] for side in found]


def test_a_change_in_the_piece() -> None:
    assert kept([*HEAD, ("b", "Erf", ["a"], ["b"]), *TAIL]) == [["a", "b", "c", "y"], ["b"]]


def test_an_end_that_is_taken_out() -> None:
    """Its readers read what stood in front of it; the source's tensor is compared with that."""
    assert kept([*HEAD, ("c", "Cos", ["a"], ["c"]), *TAIL[1:]]) == [["a", "c", "y"], ["a"]]


def test_readers_of_an_end_may_leave_results_out() -> None:
    tail = [("c", "Cos", ["b"], ["c", ""]), ("y", "Exp", ["c"], ["y", ""])]
    without = [("c", "Cos", ["a"], ["c", ""]), tail[1]]
    assert kept([*HEAD, *without], before=[*BEFORE[:2], *tail]) == [["a", "c", "y"], ["a"]]


def test_an_end_that_nobody_reads_any_more() -> None:
    after = [*HEAD, ("c", "Cos", ["a"], ["other"]), ("y", "Exp", ["other"], ["y"])]
    assert kept(after) == []
    assert kept(after, cuts=("a", "y")) == [], "whether a cut is lost or not"


def test_second_names_are_no_change() -> None:
    wrapped = [*HEAD, ("i", "Identity", ["a"], ["i"]), ("b", "Erf", ["i"], ["b"]), *TAIL[:1]]
    wrapped += [("j", "Identity", ["c"], ["j"]), ("y", "Exp", ["j"], ["y"])]
    assert kept(wrapped) == [["a", "b", "c", "y"], ["b"]]


@pytest.mark.parametrize(
    "after",
    [
        [("a", "Cos", ["x"], ["a"]), *BEFORE[1:]],  # in front of what's fed
        [*BEFORE[:2], ("c", "Sin", ["b"], ["c"]), *TAIL[1:]],  # behind the piece
        [*HEAD, ("b", "Transpose", ["a"], ["b"]), *TAIL],  # axes may be others
        [*HEAD, ("b", "Tanh", ["a"], ["b"]), ("y", "Exp", ["b"], ["y"])],  # a cut is gone
    ],
)
def test_what_pieces_alone_do_not_tell(after: Nodes) -> None:
    assert kept(after) == []

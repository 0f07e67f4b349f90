"""Edits that aren't needed are dropped, and no others."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from repair_world import World, nodes_of, piece
from repair_world import found as pieces

from conrepair.diagnosis.repairs.edits import Graft
from conrepair.diagnosis.repairs.minimize import minimized
from conrepair.diagnosis.repairs.state import RepairState, Taken, patch_of
from conrepair.formats.editing.operation import Operation


def small(world: World, taken: list[Taken], *, tries: int = 100) -> tuple[RepairState, list[int]]:
    """What is left, and how many edits those candidates had that were no good."""
    no_good: list[int] = []
    result = minimized(
        world.state(taken),
        world.judge,
        lambda: len(world.judged) >= tries,
        lambda left: no_good.append(len(patch_of(left).edits)),
    )
    assert world.kept == 1, "the file of what is left, and no other"
    return result, no_good


def test_an_edit_that_alone_fixes_its_piece_is_not_tried(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["b"]})
    result, _ = small(world, [world.taken("s", "a"), world.taken("t", "b")])
    assert nodes_of(result) == ["a", "b"]
    assert world.judged == []


def test_pieces_lose_an_edit_at_a_time_all_in_one_candidate(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["d", "f"], "u": ["g"]})
    taken = [world.taken("s", "a", "b", "c"), world.taken("t", "d", "e", "f"), world.taken("u", "g")]
    result, _ = small(world, taken)
    assert nodes_of(result) == ["a", "d", "f", "g"]
    assert not result.found.result.faults
    side_by_side = [["b", "c", "e", "f", "g"], ["a", "c", "d", "f", "g"], ["a", "d", "g"], ["a", "d", "f", "g"]]
    assert world.judged == side_by_side, "no edit is looked at again, one by one"


def test_a_single_piece_loses_its_edits_one_by_one(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["b", "d"]})
    result, no_good = small(world, [world.taken("s", "a", "b", "c", "d")])
    assert nodes_of(result) == ["b", "d"]
    assert world.judged == [["b", "c", "d"], ["c", "d"], ["b", "d"], ["b"]]
    assert no_good == [2, 1]


def test_behind_edits_that_are_needed_others_are_tried(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["c"]})
    result, no_good = small(world, [world.taken("s", "a"), world.taken("t", "b", "c")])
    assert nodes_of(result) == ["a", "c"]
    assert world.judged == [["a", "c"]]
    assert no_good == []


def test_a_proposal_that_is_not_needed_goes_as_a_whole(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["b"]}, shared={"s": ["w"], "t": ["w"]})
    result, no_good = small(world, [world.taken("s", "a"), world.taken("t", "c"), world.taken("t", "b")])
    assert [len(item.edits) for item in result.taken] == [1, 1]
    assert nodes_of(result) == ["a", "b"]
    assert no_good == [2, 1]


@pytest.mark.parametrize("change", [{"reach": frozenset()}, {"left": frozenset({"s"})}])
def test_what_reaches_something_unknown_is_tried(tmp_path: Path, change: dict[str, frozenset[str]]) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["b"]})
    first = dataclasses.replace(world.taken("s", "a"), **change)
    result, no_good = small(world, [first, world.taken("t", "b")])
    assert nodes_of(result) == ["a", "b"]
    assert ["b"] in world.judged
    assert no_good == ([1, 1] if "reach" in change else [1])


def test_candidates_that_can_not_be_written_are_no_better(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["c"]})
    taken = [world.taken("s", "a", "b"), world.taken("t", "c", "d")]
    state = world.state(taken)
    result = minimized(state, lambda _: None, lambda: False, lambda _: None)
    assert result is state
    assert world.kept == 1


@pytest.mark.parametrize("tries", [0, 1, 2])
def test_it_ends_in_time(tmp_path: Path, tries: int) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["c"]})
    result, _ = small(world, [world.taken("s", "a", "b"), world.taken("t", "c", "d")], tries=tries)
    assert len(world.judged) <= tries + 1
    assert not result.found.result.faults


def test_edits_that_are_needed_together_stay(tmp_path: Path) -> None:
    """Each piece is clean without one of its edits, and the whole isn't as good."""
    world = World(tmp_path, {"s": ["a"], "t": ["c"]})
    state = world.state([world.taken("s", "a", "b"), world.taken("t", "c", "d")])

    def judge(taken: tuple[Taken, ...]) -> RepairState | None:
        found = world.judge(taken)
        if found is not None and len(world.judged) > 2:
            return dataclasses.replace(found, found=pieces([piece("u")]))
        return found

    result = minimized(state, judge, lambda: len(world.judged) > 2, lambda _: None)
    assert result is state
    assert world.judged == [["b", "d"], ["a", "c"], ["a", "c"]]
    assert world.kept == 1


def test_reordered_operands_lose_the_orders_that_cancel(tmp_path: Path) -> None:
    """Scores are the same in any order of the features that queries and keys have in common."""
    world = World(tmp_path, {})
    q, q_back, k, k_back = (
        Graft(tensor, (Operation("Gather", (tensor,), {"axis": 1}, {"indices": np.array([1, 0])}),))
        for tensor in ("q", "q_back", "k", "k_back")
    )

    def judge(taken: tuple[Taken, ...]) -> RepairState:
        put_in = {edit.tensor for item in taken for edit in item.edits if isinstance(edit, Graft)}
        right = {"q", "k"} <= put_in and ("q_back" in put_in) == ("k_back" in put_in)
        state = world.state(list(taken))
        return state if right else dataclasses.replace(state, found=pieces([piece("u")]))

    state = world.state([Taken((q, q_back), ""), Taken((k, k_back), "")])
    result = minimized(state, judge, lambda: False, lambda _: None)
    assert patch_of(result.taken).edits == (q, k)
    assert world.kept == 1

"""Rounds over pieces that certain edits fix, without a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from repair_world import World, edit, nodes_of

from conrepair.diagnosis.localization.located import Guilty
from conrepair.diagnosis.repairs.criteria import source_of
from conrepair.diagnosis.repairs.patch import Patch
from conrepair.diagnosis.repairs.proposals.proposal import Proposal
from conrepair.diagnosis.repairs.rounds import Judging, Rounds
from conrepair.diagnosis.repairs.state import Candidate, RepairState, Taken

Proposed = Mapping[str, Sequence[Sequence[str]]]


def rounds(world: World, proposed: Proposed, *, tries: int = 100) -> Rounds:
    """By piece the proposals, each as the nodes that it edits."""

    def propose(piece: Guilty) -> Iterator[Proposal]:
        return (tuple(map(edit, nodes)) for nodes in proposed.get(source_of(piece), ()))

    judging = Judging(world.make, world.alone, world.localize)
    return Rounds(judging, propose, lambda: len(world.judged) >= tries)


def ran(world: World, proposed: Proposed, *, tries: int = 100, first: tuple[Taken, ...] = ()) -> RepairState:
    return rounds(world, proposed, tries=tries).run(world.state(first))


def test_all_pieces_at_once_the_guiltiest_first(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["b"]})
    result = ran(world, {"s": [["a"]], "t": [["b"]]})
    assert world.judged == [["b", "a"]]
    assert not result.found.result.faults
    assert [item.reach for item in result.taken] == [{"t"}, {"s"}]
    assert "computing `t` adds an error of below 0.0001 %, 60 % before" in result.taken[0].gain
    assert world.kept == 2, "of the state as it came, and of the result"


def test_what_helped_stays_and_the_others_go_on(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["b"]})
    search = rounds(world, {"s": [["x"], ["a"]], "t": [["b"]]})
    result = search.run(world.state(()))
    assert world.judged == [["b", "x"], ["b", "a"]]
    assert nodes_of(result) == ["b", "a"]
    assert search.spent == {"s": {Patch((edit("x"),)).digest}}
    assert world.kept == 2


def test_what_fixes_nothing_leaves_the_state_as_it_is(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["b"]})
    state = world.state(())
    assert rounds(world, {"s": [["x"], ["y"]], "t": [["z"]]}).run(state).taken == ()
    assert world.judged == [["z", "x"], ["y"]]
    assert world.kept == 1


def test_after_some_rounds_that_fix_nothing_it_ends(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"]})
    ran(world, {"s": [[f"x{number}"] for number in range(9)]})
    assert world.judged == [[f"x{number}"] for number in range(4)]


def test_a_piece_that_is_repaired_late_begins_the_count_anew(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["b"]})
    wrong = [[f"x{number}"] for number in range(3)]
    result = ran(world, {"s": [*wrong, ["a"]], "t": [*wrong, *wrong, ["b"]]})
    assert sorted(nodes_of(result)) == ["a", "b"]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_one_that_can_not_be_written_keeps_no_other_from_it(tmp_path: Path, count: int) -> None:
    names = [f"s{number}" for number in range(count)]
    world = World(tmp_path, {name: [f"a{name}"] for name in names}, broken=["x"])
    result = ran(world, {name: [["x"]] if name == names[0] else [[f"a{name}"]] for name in names})
    assert sorted(nodes_of(result)) == [f"a{name}" for name in names[1:]]
    assert world.kept == 2


def test_what_can_be_written_is_judged_once(tmp_path: Path) -> None:
    """Halves are written, and nothing is looked at, until all that can be written are."""
    names = [f"s{number}" for number in range(8)]
    world = World(tmp_path, {name: [f"a{name}"] for name in names}, broken=["as2"])
    judged: list[list[str]] = []
    search = rounds(world, {name: [[f"a{name}"]] for name in names})

    def localize(candidate: Candidate) -> RepairState:
        state = world.localize(candidate)
        judged.append(sorted(nodes_of(state)))
        return state

    search._judging = dataclasses.replace(search._judging, localize=localize)
    others = [f"a{name}" for name in names if name != "s2"]
    assert sorted(nodes_of(search.run(world.state(())))) == others
    assert judged == [others]


def test_of_those_alike_two_are_tried_that_can_not_be_written(tmp_path: Path) -> None:
    """Sixteen by halves would be thirty-one."""
    names = [f"s{number:02}" for number in range(16)]
    world = World(tmp_path, {name: [f"a{name}"] for name in names}, broken=[f"x{name}" for name in names])
    made: list[int] = []
    search = rounds(world, {name: [[f"x{name}"], [f"a{name}"]] for name in names})
    usual = search._judging.make

    def make(taken: tuple[Taken, ...]) -> Candidate | None:
        made.append(len(taken))
        return usual(taken)

    search._judging = dataclasses.replace(search._judging, make=make)
    result = search.run(world.state(()))
    assert sorted(nodes_of(result)) == [f"a{name}" for name in names]
    assert made == [16, 8, 4, 2, 1, 1, 16]
    assert not search.hopeless


def test_an_edit_that_pieces_share_is_made_once(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["a"]})
    result = ran(world, {"s": [["a"]], "t": [["a"]]})
    assert world.judged == [["a"]]
    assert nodes_of(result) == ["a"]


def test_what_was_taken_before_stays(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["b"]})
    result = ran(world, {"t": [["b"]]}, first=(world.taken("s", "a"),))
    assert nodes_of(result) == ["a", "b"]


@pytest.mark.parametrize("tries", [0, 1, 2])
def test_it_ends_in_time(tmp_path: Path, tries: int) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["b"]})
    ran(world, {"s": [["x"], ["y"], ["a"]], "t": [["z"], ["b"]]}, tries=tries)
    assert len(world.judged) <= tries + 1, "what helped is judged as a whole"


def test_pieces_that_tell_alone_need_no_look_at_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, {"alone s": ["a"], "alone t": ["b"]})
    whole: list[list[str]] = []
    localize = world.localize

    def counted(candidate: Candidate) -> RepairState:
        whole.append(nodes_of(candidate))
        return localize(candidate)

    monkeypatch.setattr(world, "localize", counted)
    result = ran(world, {"alone s": [["x"], ["y"], ["a"]], "alone t": [["z"], ["b"]]})
    assert world.judged == [["z", "x"], ["b", "y"], ["b", "a"]]
    assert whole == [["b", "a"]]
    assert not result.found.result.faults
    assert world.kept == 2


def test_a_piece_that_nothing_makes_better_is_hopeless(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"], "t": ["b"]})
    search = rounds(world, {"s": [["x"], ["y"]], "t": [["b"]]})
    search.run(world.state(()))
    assert search.hopeless == {"s"}


def test_a_piece_with_proposals_left_is_not(tmp_path: Path) -> None:
    world = World(tmp_path, {"s": ["a"]})
    search = rounds(world, {"s": [[f"x{number}"] for number in range(9)]})
    search.run(world.state(()))
    assert not search.hopeless


def test_one_that_something_makes_better_is_not(tmp_path: Path) -> None:
    world = World(tmp_path, {"alone s": ["a"]})  # where all comes nearer
    search = rounds(world, {"alone s": [["x"], ["y"]]})
    search.run(world.state(()))
    assert not search.hopeless


def test_looks_at_pieces_alone_count_for_little(tmp_path: Path) -> None:
    world = World(tmp_path, {"alone s": ["a"]})
    result = ran(world, {"alone s": [*([f"x{number}"] for number in range(9)), ["a"]]})
    assert nodes_of(result) == ["a"]
    many = [[f"x{number}"] for number in range(99)]
    assert not ran(world, {"alone s": [*many, ["a"]]}).taken
    assert 20 < len(world.judged) - 10 < 50

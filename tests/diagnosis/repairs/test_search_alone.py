"""The search over pieces that certain edits fix, without a model."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from repair_world import edit, found, nodes_of, piece

from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.repairs import search as searching
from conrepair.diagnosis.repairs.criteria import source_of, unplaced
from conrepair.diagnosis.repairs.patch import Patch
from conrepair.diagnosis.repairs.proposals.all import CHANGES, IN_FLOAT, REWRITINGS
from conrepair.diagnosis.repairs.proposals.proposal import Proposal
from conrepair.diagnosis.repairs.search import SearchOutcome, search
from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.files.journal import Journal

Look = Callable[[frozenset[str]], Found]
Proposed = Mapping[str, Sequence[Sequence[str]]]
SORTS = {id(CHANGES): "change", id(REWRITINGS): "rewrite", id(IN_FLOAT): "float"}


class Workbench:
    """Candidates by the nodes that they edit."""

    def __init__(self, look: Look, monkeypatch: pytest.MonkeyPatch, proposed: Proposed) -> None:
        """Judge by what is edited; propose, by "sort piece", some nodes."""
        self.tried: list[str] = []
        self.broken: dict[str, Exception] = {}
        self.wrong_elsewhere: set[str] = set()
        self._look = look
        self.editor = SimpleNamespace(again=lambda: None, graph=None)
        self.graph = self.range_of = None
        self.samples = 4
        self.is_of_any_length = False
        self.target = SimpleNamespace(recipe=None, data=SimpleNamespace(count=8))

        def proposals(region: Any, _editor: Any, _range: Any, sort: Any, _named: Any) -> Iterator[Proposal]:
            return (tuple(map(edit, nodes)) for nodes in proposed.get(f"{SORTS[id(sort)]} {region.name}", ()))

        def make(patch: Patch, _editor: Any, folder: Path, stem: str, *, whole: bool) -> Model:
            nodes = " ".join(cast(Any, item).node for item in patch.edits)
            self.tried.append(nodes)
            for name in nodes.split():
                if name in self.broken:
                    raise self.broken[name]
            return Model("onnx", str(folder / f"{stem}.onnx"), nodes)

        monkeypatch.setattr(searching, "proposals", proposals)
        monkeypatch.setattr(searching, "end_proposals", lambda *_: ())
        monkeypatch.setattr(Patch, "make", make)

    def look_alone(self, _model: Model, _found: Found, _pieces: object) -> dict[str, object]:
        return {}  # only a look at the whole tells

    def elsewhere(self, model: Model, _found: Found, pieces: Sequence[Any]) -> dict[str, str]:
        wrong = self.wrong_elsewhere & set(model.sha256.split())
        return dict.fromkeys((source_of(item) for item in pieces), "zeros") if wrong else {}

    def localize(self, model: Model) -> Found:
        return self._look(frozenset(model.sha256.split()))

    def run(self, folder: Path, *, seconds: float = 60, journal: Journal | None = None) -> SearchOutcome:
        model = Model("onnx", str(folder / "target.onnx"), "")
        return search(cast(Any, self), model, folder, seconds=seconds, journal=journal)


def independent(needed: Mapping[str, str]) -> Look:
    """Each piece needs a node edited."""

    def look(edited: frozenset[str]) -> Found:
        pieces = [piece(name) for name, node in needed.items() if node not in edited]
        return found(pieces, 0.1 * len(pieces), rows=dict.fromkeys(needed, 1e-07))

    return look


def test_the_first_edit_that_fixes_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(independent({"s": "b"}), monkeypatch, {"change s": [["a"], ["b"], ["c"]]})
    outcome = bench.run(tmp_path)
    assert bench.tried == ["a", "b"]
    assert (outcome.tried, outcome.recalled, outcome.in_time, outcome.interrupted) == (2, 0, True, False)
    assert nodes_of(outcome.state) == ["b"]
    assert "outputs differ by 0 %, 10 % before" in outcome.effects[0]
    assert len(list(tmp_path.iterdir())) == 1


def test_what_fixes_samples_only_is_no_repair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    either = lambda edited: found([] if edited & {"a", "b"} else [piece("s")], 0.0, rows={"s": 1e-7})  # noqa: E731
    bench = Workbench(either, monkeypatch, {"change s": [["a"], ["b"]]})
    bench.wrong_elsewhere = {"a"}
    outcome = bench.run(tmp_path)
    assert nodes_of(outcome.state) == ["b"]
    assert "right on the samples, but outputs differ on zeros" in outcome.failed[0]
    assert len(list(tmp_path.iterdir())) == 1


def test_whole_pieces_are_written_anew_where_nothing_smaller_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposed = {"change s": [["a"]], "rewrite s": [["b"]], "float s": [["c"]]}
    bench = Workbench(independent({"s": "c"}), monkeypatch, proposed)
    assert nodes_of(bench.run(tmp_path).state) == ["c"]
    assert bench.tried == ["a", "b", "c"]


def test_all_pieces_at_once_and_then_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proposed = {"change s": [["a"]], "change t": [["x"]], "rewrite t": [["b"]]}
    bench = Workbench(independent({"s": "a", "t": "b"}), monkeypatch, proposed)
    outcome = bench.run(tmp_path)
    assert nodes_of(outcome.state) == ["a", "b"]
    assert bench.tried == ["a x", "a", "a b"], "what a round has shown to be no good isn't tried again"
    assert not outcome.after.result.faults
    assert outcome.before.result.faults


def smaller(edited: frozenset[str]) -> Found:
    """Three operators, of which an edit of `p` leaves two wrong; `w` writes all anew."""
    pieces = [] if "t0" in edited else [piece("t")]
    if "w" in edited:
        return found(pieces, 0.0, rows={"s": 1e-7, "t": 1e-7})
    if "p" in edited:
        return found([*pieces, piece("m", inside=["l"])], 0.4, rows={"s": 1e-7, "t": 1e-7})
    return found([*pieces, piece("s", inside=["l", "m"])], 0.3, rows={"t": 1e-7})


def test_what_only_became_smaller_is_kept_for_the_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proposed = {"change t": [["t0"]], "change s": [["x"], ["p"]]}
    bench = Workbench(smaller, monkeypatch, proposed)
    steps: list[tuple[list[str], list[frozenset[str]]]] = []
    one = searching._EditSearch._advance

    def advance(self: Any, sorts: Any) -> bool:
        changed = one(self, sorts)
        steps.append((nodes_of(self.outcome.state), [item.left for item in self.outcome.taken]))
        return changed

    monkeypatch.setattr(searching._EditSearch, "_advance", advance)
    outcome = bench.run(tmp_path)
    assert steps[0] == (["t0", "p"], [frozenset(), frozenset({"s", "l", "m"})])
    assert nodes_of(outcome.state) == ["t0"], "the outputs are nearer without it"
    assert len(list(tmp_path.iterdir())) == 2, "of this one, and of the one in front of it"


def test_a_piece_that_became_smaller_in_vain_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proposed = {"change s": [["p"]], "change t": [["t0"]], "rewrite m": [["y"]], "rewrite s": [["w"]]}
    outcome = Workbench(smaller, monkeypatch, proposed).run(tmp_path)
    assert nodes_of(outcome.state) == ["t0", "w"]
    assert not outcome.after.result.faults


def test_what_can_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(independent({"s": "d"}), monkeypatch, {"change s": [["a"], ["b"], ["c"], ["d"]]})
    bench.broken = {"a": NotEditableError("no such field"), "b": ValueError("odd"), "c": ValueError("odd")}
    outcome = bench.run(tmp_path)
    assert outcome.refused == ("no such field",)
    assert outcome.failed == ("ValueError: odd",)
    assert nodes_of(outcome.state) == ["d"]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_is_no_property_of_a_candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(independent({"s": "a"}), monkeypatch, {"change s": [["a"]]})
    bench.broken = {"a": OSError(errno.ENOSPC, "No space left on device")}
    with pytest.raises(OSError, match="No space"):
        bench.run(tmp_path)


def test_it_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(independent({"s": "a"}), monkeypatch, {"change s": [["a"]]})
    outcome = bench.run(tmp_path, seconds=-1)
    assert (bench.tried, outcome.in_time, outcome.taken) == ([], False, ())


def test_a_search_goes_on_where_one_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal()
    bench = Workbench(independent({"s": "c"}), monkeypatch, {"change s": [["a"], ["b"]]})
    bench.run(tmp_path, journal=journal)
    assert bench.tried == ["a", "b"]
    bench = Workbench(independent({"s": "c"}), monkeypatch, {"change s": [["a"], ["b"], ["c"]]})
    outcome = bench.run(tmp_path, journal=journal)
    assert bench.tried == ["c"]
    assert (outcome.tried, outcome.recalled) == (3, 2)
    assert nodes_of(outcome.state) == ["c"]


def test_outputs_are_repaired_behind_small_edits_and_before_pieces_are_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(edited: frozenset[str]) -> Found:
        return found([] if "a" in edited else [piece("s")], 0.1, more=int("e" not in edited), rows={"s": 1e-7})

    bench = Workbench(look, monkeypatch, {"change s": [["x"]], "rewrite s": [["a"]]})
    ends = lambda now, *_: [(edit("e"),)] if unplaced(now) else []  # noqa: E731
    monkeypatch.setattr(searching, "end_proposals", ends)
    outcome = bench.run(tmp_path)
    assert bench.tried[:4] == ["x", "e", "e x", "e a"]
    assert nodes_of(outcome.state) == ["e", "a"]
    assert [sorted(item.reach) for item in outcome.taken] == [[], ["s"]]


def test_what_no_change_makes_better_is_written_anew_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposed = {"change s": [["x"]], "change t": [["y"]], "rewrite s": [["a"]], "rewrite t": [["b"]]}
    bench = Workbench(independent({"s": "a", "t": "b"}), monkeypatch, proposed)
    outcome = bench.run(tmp_path)
    assert bench.tried[:2] == ["x y", "a b"]
    assert not outcome.after.result.faults


def test_what_helped_one_piece_is_tried_for_all_others_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = {"s": "a", "t": "b", "u": "c"}
    proposed = {
        f"change {name}": [*([f"{name}{number}"] for number in range(4)), [node]] for name, node in needed.items()
    }
    bench = Workbench(independent(needed), monkeypatch, proposed)
    outcome = bench.run(tmp_path)
    assert not outcome.after.result.faults
    assert bench.tried[4:6] == ["a", "a b c"], "four rounds for nothing, one piece alone, the rest"

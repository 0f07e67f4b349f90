"""A search that is stopped at any candidate goes on there; one that finds no room says so."""

from __future__ import annotations

import dataclasses
import errno
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crossed import slower
from localized import WEIGHTS, Variant

from benchmarks.faults.catalogue import faults
from benchmarks.faults.inject_file import inject_file
from conrepair.diagnosis.localization.faces.region import Region
from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs import search
from conrepair.diagnosis.repairs.bench import Bench
from conrepair.diagnosis.repairs.edits import SetParameter
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.diagnosis.repairs.proposals.all import CHANGES
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, Proposer
from conrepair.diagnosis.repairs.repair import apply_patch, repair_models
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.diagnosis.repairs.rounds import Rounds
from conrepair.diagnosis.repairs.verify import Unseen
from conrepair.formats.editing.editor import Editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.files.journal import Journal, end_early
from conrepair.ground.runtime.files.whole import sha256_of
from tests.support.native_models import feeds_of, tflite_file
from tests_real.diagnosis.repairs.test_repair import _OPTIONS, subject

_FAULT, _DUDS = "shortcut-missing", 6


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Model, Model]:
    right = tflite_file("image", tmp_path)
    fault = next(fault for fault in faults() if fault.name == _FAULT)
    feeds = feeds_of("image", channels_last=True)
    wrong = inject_file(right, fault, feeds, np.random.default_rng(3), tmp_path / "faulty")
    assert wrong is not None
    return right, dataclasses.replace(right, path=str(wrong.path), sha256=sha256_of(wrong.path))


@pytest.fixture(autouse=True)
def duds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edits that fix nothing, proposed before all others."""
    usual = search.proposals

    def proposals(
        region: Region, editor: Editor, range_of: Any, proposers: Sequence[Proposer], named: Sequence[str]
    ) -> Iterator[Proposal]:
        node = next(node for node in editor.graph.nodes if "weight" in node.parameters)
        values = node.parameters["weight"].numpy()
        for number in range(_DUDS if proposers is CHANGES else 0):
            yield (SetParameter(node.name, "weight", values * np.float32(1.5 + number)),)
        yield from usual(region, editor, range_of, proposers, named)

    monkeypatch.setattr(search, "proposals", proposals)


class Counting:
    """Counts what is judged, by the file's hash, and stops before the nth."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.judged: list[str] = []
        self.stop_at = 1 << 30
        self.then: BaseException = KeyboardInterrupt()
        usual = Bench._localized

        def localized(bench: Bench, model: Model, options: Options) -> Found:
            if len(self.judged) >= self.stop_at:
                raise self.then
            self.judged.append(model.sha256)
            return usual(bench, model, options)

        monkeypatch.setattr(Bench, "_localized", localized)


def run(pair: tuple[Model, Model], folder: Path, out: str, journal: Path) -> RepairResult:
    right, wrong = (subject(model, folder) for model in pair)
    return repair_models(right, wrong, folder / out, _OPTIONS, Journal(journal))


@pytest.mark.parametrize("when", [*slower("early"), "middle", *slower("late")])
def test_no_candidate_is_judged_again(
    when: str, pair: tuple[Model, Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(monkeypatch)
    whole = run(pair, tmp_path, "whole", tmp_path / "none")
    once = list(counting.judged)
    assert whole.tried > _DUDS
    stop_at = {"early": 2, "middle": len(once) // 2, "late": len(once) - 3}[when]
    counting.judged, counting.stop_at = [], stop_at
    journal = tmp_path / f"journal-{stop_at}"
    with pytest.raises(KeyboardInterrupt):
        run(pair, tmp_path, f"stopped-{stop_at}", journal)
    assert not list((tmp_path / f"stopped-{stop_at}").rglob("repaired*")), "half a result"
    first, counting.judged, counting.stop_at = counting.judged, [], 1 << 30
    with (journal / "lines").open("a") as stream:
        stream.write("0123")  # the line that was being written when the process died
    again = run(pair, tmp_path, f"again-{stop_at}", journal)
    assert (again.mended, again.edits, again.tried) == (whole.mended, whole.edits, whole.tried)
    assert again.recalled == len(first) - 1
    # The target itself is looked into anew, and nothing else.
    assert set(first) & set(counting.judged) == {pair[1].sha256}


def test_asked_to_end_it_gives_what_it_has(pair: tuple[Model, Model], tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    end_early(journal)
    result = run(pair, tmp_path, "out", journal)
    assert (result.interrupted, result.edits, result.model, result.tried) == (True, (), None, 0)
    end_early(journal, wanted=False)
    assert run(pair, tmp_path, "out", journal).mended


def test_asked_to_end_after_an_edit_it_gives_that_one_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = {"inner": WEIGHTS["inner"] * np.float32(1.1), "dense": WEIGHTS["dense"][::-1]}
    models = Variant().write(tmp_path / "right.onnx"), Variant(weights=faulty).write(tmp_path / "wrong.onnx")
    inputs = framework("onnx").describe(models[0]).inputs
    data = DataReference("synthetic", 12, samples=inputs)
    right, wrong = (FedModel(model, inputs, data, None) for model in models)
    journal = tmp_path / "journal"
    halfway: list[str] = []
    usual = Bench._localized

    def localized(bench: Bench, model: Model, options: Options) -> Found:
        found = usual(bench, model, options)
        if [fault.target_layers for fault in found.result.faults] == [("c",)]:
            halfway.append(model.sha256)
            end_early(journal)
        return found

    monkeypatch.setattr(Bench, "_localized", localized)
    monkeypatch.setattr(Rounds, "run", lambda _, state: state)  # one piece after the other
    result = repair_models(right, wrong, tmp_path / "out", _OPTIONS, Journal(journal))
    assert result.interrupted
    assert (len(result.before.faults), len(result.after.faults)) == (2, 1)
    assert result.edits == ("the weight of `scores` is taken from the original",)
    assert result.model is not None
    assert halfway, "the candidate with one edit was looked into"
    again = apply_patch(*read_patch(tmp_path / "out" / PATCH), wrong.model, tmp_path / "again")
    assert again is not None
    assert again.sha256 == sha256_of(Path(result.model.path))  # of a candidate only what's changed is written
    sides = (right, right.model), (wrong, again)
    unseen = Unseen(_OPTIONS.localization.samples, _OPTIONS.unseen)
    assert result.unseen_after == unseen.agreement(*(unseen.answers(*side) for side in sides))
    assert result.unseen_after.error < result.unseen_before.error


def test_no_room_is_no_answer_about_a_candidate(
    pair: tuple[Model, Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It's neither "not repaired" nor remembered."""
    counting = Counting(monkeypatch)
    counting.stop_at, counting.then = 2, OSError(errno.ENOSPC, "No space left on device")
    journal = tmp_path / "journal"
    with pytest.raises(OSError, match="No space left"):
        run(pair, tmp_path, "out", journal)
    assert len(Journal(journal)) == 1
    counting.stop_at = 1 << 30
    assert run(pair, tmp_path, "again", journal).mended


def test_without_time_nothing_is_tried(pair: tuple[Model, Model], tmp_path: Path) -> None:
    before = sha256_of(Path(pair[1].path))
    right, wrong = (subject(model, tmp_path) for model in pair)
    options = dataclasses.replace(_OPTIONS, seconds=1e-6)
    result = repair_models(right, wrong, tmp_path / "out", options)
    assert (result.in_time, result.mended, result.model, result.tried) == (False, False, None, 0)
    assert sha256_of(Path(pair[1].path)) == before

"""Findings are tried again as data: by what's installed, in order, and no program in a folder is run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fuzz_cases import case, compared_by_halves, padded_pool, right
from fuzz_findings import comparing, finding_of, written_finding

from conrepair.application.engine import place
from conrepair.ground.runtime.errors import DataError, UsageError
from conrepair.ground.runtime.outside.environments import Environment
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns.rechecking import Rechecked, recheck
from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.finding import Finding
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.report.fuzz.folder import FINDING


def again(folder: Path, room: Path) -> list[Rechecked]:
    with ProgressDisplay(quiet=True) as display:
        return recheck(folder, room, display, workers=1, seconds=30)


def gone(folder: Path) -> Finding:
    """A finding whose case is right."""
    return finding_of(right(), "ort-none", folder, suspicion=comparing(folder).suspicion)


def test_there_gone_and_unknown_in_the_order_of_folders(tmp_path: Path) -> None:
    outside = case(
        "g (float[1] x) => (float[1] y) <int64[1] i = {7}> { y = Gather (x, i) }", x=np.ones(1, np.float32)
    )
    other = finding_of(outside, "ort-none", tmp_path, suspicion=Suspicion("numbers", "answers"))
    for finding, made in ((comparing(tmp_path), compared_by_halves()), (gone(tmp_path), right()), (other, outside)):
        written_finding(finding, made, tmp_path, np.zeros(1))
    found = again(tmp_path, tmp_path)
    assert [item.finding.name for item in found] == sorted(item.finding.name for item in found)
    verdicts = {item.finding.operators[-1]: item.verdict for item in found}
    assert verdicts == {"Min": "there", "Add": "gone", "Gather": "unknown"}


def test_one_findings_folder_is_enough_and_stays_as_it_is(tmp_path: Path) -> None:
    where = written_finding(comparing(tmp_path), compared_by_halves(), tmp_path)
    (where / "reproduce.py").write_text("raise SystemExit('never run')")
    before = {path.name: path.read_bytes() for path in where.iterdir()}
    (found,) = again(where, tmp_path)
    assert found.verdict == "there"
    assert found.words.startswith("numbers: y")
    assert {path.name: path.read_bytes() for path in where.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["findings", "model.onnx"]


def test_an_optimizations_finding_is_there(tmp_path: Path) -> None:
    written_finding(finding_of(padded_pool(), "ort-all", tmp_path), padded_pool(), tmp_path)
    (found,) = again(tmp_path, tmp_path)
    assert found.verdict == "there"


@pytest.mark.workers
def test_a_crash_is_there_and_ends_nothing_else(tmp_path: Path) -> None:
    least = np.array(np.iinfo(np.int32).min, np.int32)
    made = case("g (int32 x, int32 z) => (int32 y) { y = Div (x, z) }", x=least, z=np.array(-1, np.int32))
    crash = Suspicion("crash", "process", "SIGFPE", "the process ends by SIGFPE")
    for item, what in (
        (finding_of(made, "ort-none", tmp_path, suspicion=crash), made),
        (finding_of(right(), "ort-none", tmp_path, suspicion=crash), right()),
        (comparing(tmp_path), compared_by_halves()),
    ):
        written_finding(item, what, tmp_path, np.zeros(1))
    verdicts = {item.finding.operators[-1]: item.verdict for item in again(tmp_path, tmp_path)}
    assert verdicts == {"Div": "there", "Add": "gone", "Min": "there"}


def test_without_a_finding_there_is_nothing_to_do(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError, match="holds no finding"):
            again(folder, tmp_path)


def damaged(where: Path, **told: object) -> None:
    found = json.loads((where / FINDING).read_text(encoding="utf-8"))
    (where / FINDING).write_text(json.dumps(found | told), encoding="utf-8")


def test_a_damaged_finding_is_refused(tmp_path: Path) -> None:
    where = written_finding(comparing(tmp_path), compared_by_halves(), tmp_path)
    (where / FINDING).write_text("{")
    with pytest.raises(DataError, match="no finding"):
        again(tmp_path, tmp_path)


@pytest.mark.parametrize("told", [{"system": "another"}, {"setting": "another"}, {"system": "../ort"}])
def test_a_system_that_is_not_here_is_refused(told: dict[str, str], tmp_path: Path) -> None:
    damaged(written_finding(comparing(tmp_path), compared_by_halves(), tmp_path), **told)
    with pytest.raises(UsageError, match="there is no system called"):
        again(tmp_path, tmp_path)


def test_a_case_that_was_changed_is_not_run(tmp_path: Path) -> None:
    where = written_finding(comparing(tmp_path), compared_by_halves(), tmp_path)
    other = Case(right().network, {})
    (where / "model.onnx").write_bytes(other.network)
    (found,) = again(tmp_path, tmp_path)
    assert found.verdict == "unknown"
    assert "isn't what case.json says" in found.words


def test_a_finding_of_another_case_is_not_taken_for_this_one(tmp_path: Path) -> None:
    """The case is whole, but not the finding's: what it shows says nothing of the finding."""
    where = written_finding(comparing(tmp_path), compared_by_halves(), tmp_path)
    damaged(where, case="0" * 64)
    try:
        verdicts = [item.verdict for item in again(tmp_path, tmp_path)]
    except DataError:
        return
    assert verdicts == ["unknown"]


def test_environments_of_other_releases_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make(environment: Environment, _: ProgressDisplay) -> None:
        made.append(environment.name)

    for setting in ("ort-none", "ort-all"):
        finding = finding_of(right(), setting, tmp_path, suspicion=comparing(tmp_path).suspicion, release="0.0.1")
        written_finding(finding, right(), tmp_path)
    monkeypatch.setattr(place, "make_environment", make)
    found = again(tmp_path, tmp_path)
    assert [item.verdict for item in found] == ["unknown"] * 2
    assert set(made) == {"onnxruntime==0.0.1"}

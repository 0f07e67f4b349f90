"""A finding's folder is written whole, read back the same, and refused where it's damaged or somebody else's."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fuzz_cases import compared_by_halves, padded_pool
from fuzz_findings import comparing, finding_of, written_finding

from conrepair.ground.runtime.errors import DataError, UsageError
from conrepair_lab.cases.case import read
from conrepair_lab.fuzz.cause import Cause
from conrepair_lab.fuzz.finding import Finding
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.report.fuzz.folder import FINDING, ISSUE, REPRODUCE, read_finding
from conrepair_lab.report.schema import FINDING_DOCUMENT

_CAUSE = Cause(causes=(("A", "B"),), heals=(("A",),), lines=("off(A)",), tries=7)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written_finding(comparing(tmp_path), compared_by_halves(), tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"known": "issue 7", "also": ("ort-all",)},
        {"cause": _CAUSE},
        {"suspicion": Suspicion("not finite", "answers", "", "y is NaN", "", "y", (), float("nan"), 1.0, 0.0)},
        {"suspicion": Suspicion("exception", "load", "Fail", 'ä \'\\ """ \u2028 </script>', "a.py:f")},
        {"suspicion": Suspicion("crash", "process", "SIGSEGV", "the process ends by SIGSEGV")},
    ],
)
def test_what_is_written_is_read(changes: dict[str, Any], tmp_path: Path) -> None:
    finding = comparing(tmp_path, **changes)
    where = written_finding(finding, compared_by_halves(), tmp_path)
    assert where == tmp_path / "findings" / finding.name
    assert read_finding(where) == finding
    assert read(where).key == finding.case
    jsonschema.validate(json.loads((where / FINDING).read_text(encoding="utf-8")), FINDING_DOCUMENT.schema)


def test_numbers_that_arent_compared_are_kept(tmp_path: Path) -> None:
    finding = finding_of(padded_pool(), "ort-all", tmp_path)
    found = read_finding(written_finding(finding, padded_pool(), tmp_path)).suspicion
    for name in ("index", "given", "exact", "allowed", "over"):
        assert getattr(found, name) == getattr(finding.suspicion, name)


def test_a_folder_has_all_that_is_needed_and_nothing_of_the_machine(folder: Path, tmp_path: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert {FINDING, REPRODUCE, ISSUE, "model.onnx", "inputs.npz", "case.json"} <= names
    assert not any(str(tmp_path).encode() in path.read_bytes() for path in folder.iterdir())


def test_the_same_finding_is_written_again_to_the_last_byte(folder: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert written_finding(comparing(tmp_path), compared_by_halves(), tmp_path) == folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_persons_folder_of_that_name_stays(tmp_path: Path) -> None:
    finding = comparing(tmp_path)
    mine = tmp_path / "findings" / finding.name / "notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(UsageError, match="isn't replaced"):
        written_finding(finding, compared_by_halves(), tmp_path)
    assert mine.read_text() == "mine"


def _told(change: Any) -> Any:
    def damage(folder: Path) -> None:
        told = json.loads((folder / FINDING).read_text(encoding="utf-8"))
        change(told)
        (folder / FINDING).write_text(json.dumps(told), encoding="utf-8")

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / FINDING).unlink(),
        lambda folder: (folder / FINDING).write_text(""),
        lambda folder: (folder / FINDING).write_text("[]"),
        lambda folder: (folder / FINDING).write_text("null"),
        lambda folder: (folder / FINDING).write_text('{"a":' * 5000 + "1" + "}" * 5000),
        lambda folder: (folder / FINDING).write_bytes(b"\xff\xfe"),
        lambda folder: (folder / FINDING).write_text((folder / FINDING).read_text()[:-20]),
        _told(lambda told: told.pop("schema_version")),
        _told(lambda told: told.update(schema_version=2)),
        _told(lambda told: told.update(schema_version="1")),
        _told(lambda told: told.pop("suspicion")),
        _told(lambda told: told.update(suspicion=[])),
        _told(lambda told: told["suspicion"].pop("kind")),
        _told(lambda told: told["suspicion"].update(index="here")),
        _told(lambda told: told["suspicion"].update(kind="witchcraft")),
        _told(lambda told: told.update(operators="Add")),
        _told(lambda told: told.update(tries="many")),
        _told(lambda told: told.update(cause=1)),
        _told(lambda told: told.update(blamed=["onnxruntime"])),
    ],
)
def test_what_is_damaged_or_of_somebody_else_is_refused(folder: Path, damage: Any) -> None:
    damage(folder)
    with pytest.raises(DataError, match=FINDING):
        read_finding(folder)


def test_whatever_is_read_has_a_title(folder: Path) -> None:
    assert isinstance(read_finding(folder), Finding)
    assert read_finding(folder).title
    assert dataclasses.replace(read_finding(folder), operators=()).title

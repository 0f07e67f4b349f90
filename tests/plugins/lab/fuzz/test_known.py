"""A list of what's known names findings, and a bad list is refused with what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fuzz_findings import comparing

from conrepair.ground.runtime.errors import UsageError
from conrepair_lab.fuzz.known import read_known


def where(folder: Path, *items: dict[str, Any]) -> str:
    path = folder / "known.json"
    path.write_text(json.dumps(list(items)), encoding="utf-8")
    return read_known(path).of(comparing(folder))


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"system": "ort"},
        {"system": "ort-none"},
        {"kind": "numbers"},
        {"operators": ["Min"]},
        {"message": r"^y\[\d\] is .* should be"},
        {"system": "ort", "kind": "numbers", "operators": ["Min"], "message": "should"},
    ],
)
def test_what_is_not_said_may_be_anything(item: dict[str, Any], tmp_path: Path) -> None:
    assert where(tmp_path, {"where": "issue 7", **item}) == "issue 7"


@pytest.mark.parametrize(
    "item",
    [
        {"system": "tvm"},
        {"system": "ort-all"},
        {"kind": "exception"},
        {"operators": ["Min", "Max"]},
        {"message": "no such words"},
        {"key": "0" * 64},
        {"system": "ort", "kind": "exception", "operators": ["Min"]},
    ],
)
def test_all_that_is_said_has_to_hold(item: dict[str, Any], tmp_path: Path) -> None:
    assert not where(tmp_path, {"where": "issue 7", **item})


def test_a_key_names_one_finding_and_the_first_that_holds_is_told(tmp_path: Path) -> None:
    key = comparing(tmp_path).key
    assert where(tmp_path, {"where": "other", "kind": "crash"}, {"where": "it", "key": key}, {"where": "any"}) == "it"


def test_an_empty_list_knows_nothing(tmp_path: Path) -> None:
    assert not where(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "null",
        "[1]",
        '[{"system": "ort"}]',
        '[{"where": ""}]',
        '[{"where": 1}]',
        '[{"where": "x", "operators": "Min"}]',
        '[{"where": "x", "operator": ["Min"]}]',
        '[{"where": "x", "message": "("}]',
        "[" * 5000 + "]" * 5000,
        "\xff",
    ],
)
def test_a_bad_list_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=r"known\.json is no baseline"):
        read_known(path)


def test_a_list_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no baseline"):
        read_known(tmp_path / "none.json")
    with pytest.raises(UsageError, match="no baseline"):
        read_known(tmp_path)

"""Since which release something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz_cases import compared_by_halves
from fuzz_findings import comparing, written_finding
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.runtime.errors import ToolEnvironmentError
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns import since as module
from conrepair_lab.campaigns.rechecking import Rechecked
from conrepair_lab.campaigns.since import since, turning
from conrepair_lab.fuzz.finding import Finding
from conrepair_lab.fuzz.shown import Shown
from conrepair_lab.report.fuzz.folder import ISSUE, read_finding

RELEASES = [f"1.{number}.0" for number in range(12)]


@given(st.integers(1, 40), st.data())
def test_neighbours_that_differ_are_found_in_as_few_questions_as_halving_takes(
    count: int, data: st.DataObject
) -> None:
    begins = data.draw(st.integers(0, count))
    asked = []

    def shows(place: int) -> bool:
        asked.append(place)
        return place >= begins

    wrong, right, exact = turning(count, -1, shows, 100)
    assert (wrong, right, exact) == (begins, begins - 1, True)
    assert 2 ** len(asked) <= 4 * count + 4


@given(st.integers(3, 30), st.sets(st.integers(0, 30)))
def test_those_that_cannot_say_are_passed_over(count: int, dumb: set[int]) -> None:
    wrong, right, exact = turning(count, -1, lambda place: None if place in dumb else place >= 3, 100)
    assert exact
    assert wrong == min(place for place in range(3, count + 1) if place == count or place not in dumb)
    assert right < wrong
    assert all(place in dumb for place in range(right + 1, wrong))


def test_no_more_are_asked_than_may_be() -> None:
    asked: list[int] = []
    assert not turning(1000, -1, lambda place: bool(asked.append(place)) or place >= 3, 4)[2]
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("own", "wrong", "broken", "expected"),
    [
        ("1.8.0", range(5, 10), (), ("1.5.0", "1.4.0", "1.10.0")),
        ("1.11.0", range(12), (), ("1.0.0", "", "")),
        ("1.8.0", range(5, 12), (), ("1.5.0", "1.4.0", "")),
        ("1.8.0", range(5, 10), (4,), ("1.5.0", "1.3.0", "1.10.0")),
    ],
)
def test_a_findings_releases(
    own: str,
    wrong: range,
    broken: tuple[int, ...],
    expected: tuple[str, str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finding = comparing(tmp_path, blamed={"onnxruntime": own})
    written_finding(finding, compared_by_halves(), tmp_path)
    asked = []

    def tried(pairs: list[tuple[Path, Finding]], *_: object, **__: object) -> list[Rechecked]:
        ((_, other),) = pairs
        place = RELEASES.index(other.release)
        asked.append(other.release)
        if place in broken:
            raise ToolEnvironmentError("no wheel")
        said = "there" if place in wrong else "gone"
        return [Rechecked(other, said, "", Shown(other.release, said, "exit code 0", "as it should be"))]

    monkeypatch.setattr(module, "tried_again", tried)
    monkeypatch.setattr(module, "releases_of", lambda name: RELEASES if name == "onnxruntime" else [])
    with ProgressDisplay(quiet=True) as display:
        (found,) = since(tmp_path, tmp_path, display, workers=1, seconds=30, most=9)
    assert (found.first_wrong, found.last_right, found.first_right) == expected
    assert found.exact
    assert list(found.asked) == asked
    assert own not in asked
    assert found.words.startswith(f"wrong since {expected[0]}, ")
    (folder,) = (tmp_path / "findings").iterdir()
    told = read_finding(folder)
    assert told.since is not None
    assert (told.since.first_wrong, told.since.last_right, told.since.first_right) == expected
    assert [item.release for item in told.shown] == [release for release in expected[1:] if release]
    text = (folder / ISSUE).read_text(encoding="utf-8")
    assert f"Releases: wrong since {expected[0]}" in text
    assert ("as it should be" in text) == bool(told.shown)

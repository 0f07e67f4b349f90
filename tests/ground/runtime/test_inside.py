"""A folder that somebody else has made: nothing is written or read through a link out of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.listing import Listing
from conrepair.ground.runtime.files.outputs import Output, lies_in, place_in


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("years")
    (tmp_path / "theirs" / "real").mkdir(parents=True)
    return tmp_path / "theirs"


def test_plain_names_lead_into_the_folder(theirs: Path) -> None:
    (theirs / "real" / "old.csv").write_text("of before")
    (theirs.parent / "named").symlink_to(theirs)
    for folder in (theirs, theirs.parent / "named"):
        for name in ("a.csv", "real/old.csv", "real/deep/new.csv"):
            assert place_in(folder, name) == folder / name


@pytest.mark.parametrize("name", ["", ".", "/a", "../a", "real/../../a", "a\0b", "x" * 300, "d/" * 2050])
def test_names_that_lead_elsewhere_are_refused(name: str, theirs: Path) -> None:
    with pytest.raises(UsageError, match=r"leads out of|is no path"):
        place_in(theirs, name)


def test_nothing_is_written_through_a_link_or_in_place_of_a_folder(theirs: Path) -> None:
    (theirs / "runs").symlink_to(theirs.parent / "mine")
    (theirs / "real" / "runs").symlink_to("/nowhere")
    (theirs / "table.csv").symlink_to(theirs.parent / "mine" / "precious")
    (theirs / "file").write_text("")
    os.mkfifo(theirs / "pipe")
    for name in ("runs/a.csv", "runs", "real/runs/a.csv", "table.csv"):
        with pytest.raises(UsageError, match="is a link, and nothing is written through links"):
            place_in(theirs, name)
    for name, what in (("real", "file"), ("pipe", "file"), ("file/a.csv", "folder")):
        with pytest.raises(UsageError, match=f"is no {what}"):
            place_in(theirs, name)


def test_what_it_holds_is_its_own_and_links_out_of_it_are_not(theirs: Path) -> None:
    precious = theirs.parent / "mine" / "precious"
    (theirs / "model.onnx").write_text("")
    (theirs / "saved" / "variables").mkdir(parents=True)
    (theirs / "saved" / "variables" / "data").write_text("")
    for path in ("model.onnx", "saved"):
        assert lies_in(theirs, theirs / path), path
    (theirs / "link.onnx").symlink_to(precious)
    os.mkfifo(theirs / "pipe.onnx")
    outside = [precious, "/dev/zero", theirs / "link.onnx", theirs / "pipe.onnx", theirs / "gone.onnx", "a\0b"]
    for path in (*outside, theirs, theirs / "real" / ".." / "model.onnx", theirs / ".." / "mine" / "precious"):
        assert not lies_in(theirs, path), path
    for name, target in (("file", precious), ("folder", precious.parent)):
        link = theirs / "saved" / "variables" / name
        link.symlink_to(target)
        assert not lies_in(theirs, theirs / "saved"), name
        link.unlink()


@pytest.mark.parametrize("part", ["old", "new"])
def test_a_scratch_folder_that_is_a_link_moves_nothing_here(part: str, theirs: Path) -> None:
    """What a killed run took away is given back to its folder: not what somebody made to look so."""
    made = theirs / ".conrepair-output-1"
    made.mkdir()
    Listing("table").write(made / "listed.txt")
    (made / part).symlink_to(theirs.parent / "mine")
    (made / {"old": "new", "new": "old"}[part]).mkdir()
    (theirs / ".conrepair-output-2").symlink_to(theirs.parent / "mine")
    with Output(theirs / "a.csv", "table", beside=True).write() as temporary:
        temporary.write_text("1")
    assert (theirs.parent / "mine" / "precious").read_text() == "years"
    assert not (theirs / "precious").exists()

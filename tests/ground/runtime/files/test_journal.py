from __future__ import annotations

import os
from pathlib import Path

import pytest

from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.files.journal import Journal, blame, end_early, forget_tried


def test_lines_outlive_the_journal_and_a_torn_one_is_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "kept")
    assert not (tmp_path / "kept").exists(), "nothing is written yet"
    journal.add("one")
    with (tmp_path / "kept" / "lines").open("a") as stream:
        stream.write("tw")
    again = Journal(tmp_path / "kept")
    assert ("one" in again, "tw" in again, len(again)) == (True, False, 1)
    again.add("two")
    assert {"one", "two"} <= {line for line in ("one", "two", "tw") if line in Journal(tmp_path / "kept")}


def test_a_wish_to_end_can_be_taken_back(tmp_path: Path) -> None:
    end_early(tmp_path / "gone")  # its job has ended
    journal = Journal(tmp_path)
    end_early(tmp_path)
    assert journal.asked_to_end
    end_early(tmp_path, wanted=False)
    assert not journal.asked_to_end
    assert not Journal().asked_to_end


def test_what_was_tried_when_its_process_died_is_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with journal.trying("survived"):
        assert (tmp_path / "tried").read_text() == "survived"
    with pytest.raises(ValueError, match="no crash"), journal.trying("raised"):
        raise ValueError("no crash")
    assert not blame(tmp_path)
    with journal.trying("fatal"):
        assert blame(tmp_path), "as whoever watches the process does"
    assert not blame(tmp_path)
    again = Journal(tmp_path)
    assert [line in again for line in ("survived", "raised", "fatal")] == [False, False, True]
    with Journal().trying("in memory"):
        pass


def test_of_several_jobs_each_is_blamed_for_its_own(tmp_path: Path) -> None:
    one, two = (Journal(tmp_path, whose) for whose in ("1", "2"))
    with one.trying("first"), two.trying("second"):
        assert blame(tmp_path, "2")
        assert [line in Journal(tmp_path) for line in ("first", "second")] == [False, True]
        forget_tried(tmp_path, "1")  # as who starts a job does: it was stopped, and didn't die
        assert not blame(tmp_path, "1")


def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lines")
    with pytest.raises(ConrepairError, match="lines is no file, but a pipe"):
        Journal(tmp_path)

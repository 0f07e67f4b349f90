"""`conrepair help VERB`, as many type it."""

from __future__ import annotations

import pytest

from conrepair.application.cli import main


def printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_help_explains_a_verb(capsys: pytest.CaptureFixture[str]) -> None:
    told = printed(["help", "localize"], capsys)
    assert told.startswith("usage: conrepair localize ORIGINAL CONVERTED [CONVERTED ...] [OPTIONS]")
    assert told == printed(["localize", "--help"], capsys)


def test_help_alone_lists_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    told = printed(["help"], capsys)
    assert told == printed(["--help"], capsys)
    assert "`conrepair help VERB` has its options." in told


def test_help_of_no_verb_says_which_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["help", "lokalize"])
    assert ended.value.code == 2
    assert "'lokalize' isn't known; did you mean 'localize'?" in capsys.readouterr().err

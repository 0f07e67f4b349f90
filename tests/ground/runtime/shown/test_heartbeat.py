"""Who says nothing for a while says what it's at."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from conrepair.ground.runtime.shown import heartbeat as module
from conrepair.ground.runtime.shown.heartbeat import (
    at_work,
    begun,
    current_work,
    ended,
    far,
    heartbeat,
    telling,
    told_in,
)
from conrepair.ground.runtime.shown.progress import ProgressDisplay


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SILENCE_SECONDS", 0.1)


def test_silence_is_broken_again_and_again(capsys: pytest.CaptureFixture[str]) -> None:
    with heartbeat(lambda: 0.0), at_work("a long thing"):
        time.sleep(0.5)
    said = capsys.readouterr().err.splitlines()
    assert len(said) >= 2
    assert all(line.startswith("still at a long thing (") for line in said)


def test_who_speaks_is_not_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with heartbeat(time.monotonic), at_work("a long thing"):
        time.sleep(0.4)
    with heartbeat(lambda: 0.0, wanted=False):
        time.sleep(0.4)
    assert capsys.readouterr().err == ""


def test_the_last_that_began_is_what_is_said() -> None:
    with at_work("compare"), ProgressDisplay(quiet=True) as display:
        with display.stage("execute", 2):
            assert current_work() == "execute"
        assert current_work() == "compare"
    assert current_work() == ""


def test_how_far_it_is_is_said_with_it() -> None:
    with at_work("localize"):
        far("", part="isolate")
        assert current_work() == "localize, isolate"
        far("3 of 24 layers")
        with at_work("the hash of a"):
            far("1 of 2 MiB")
            assert current_work() == "the hash of a, 1 of 2 MiB"
        assert current_work() == "localize, isolate, 3 of 24 layers"
        far("", part="latent")
        assert current_work() == "localize, latent"
    far("4 of 24 layers")
    assert current_work() == ""


def test_another_process_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with telling(tmp_path), at_work("localize"):
        assert told_in(tmp_path) == "localize"
        far("", part="isolate")
        far("3 of 24 layers")
        assert told_in(tmp_path) == "localize, isolate"  # not each layer is worth a file
        monkeypatch.setattr(module, "_TELLING_SECONDS", 0.0)
        far("4 of 24 layers")
        assert told_in(tmp_path) == "localize, isolate, 4 of 24 layers"
    assert told_in(tmp_path) == ""
    assert not [*tmp_path.iterdir()]


def test_one_of_several_is_said_to_be_further() -> None:
    first, second = begun("a"), begun("b")
    far("half", number=first)
    assert current_work() == "b"
    ended(second)
    assert current_work() == "a, half"
    ended(first)

"""What ends its process is a suspicion, not an end."""

from __future__ import annotations

import os
import signal
import time

import pytest

from conrepair.fuzz.apart import looked_apart
from conrepair.fuzz.looking import RIGHT, Looked


def test_an_answer_comes_back() -> None:
    assert looked_apart(lambda: Looked(RIGHT, near=0.5), 10) == Looked(RIGHT)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_crash_has_its_signal(number: signal.Signals) -> None:
    def crash() -> Looked:
        os.kill(os.getpid(), number)
        raise AssertionError("alive")

    found = looked_apart(crash, 10).suspicion
    assert found is not None
    assert (found.kind, found.error) == ("crash", number.name)


def test_what_does_not_end_is_ended() -> None:
    begun = time.monotonic()
    found = looked_apart(lambda: time.sleep(60) or Looked(RIGHT), 0.2).suspicion  # type: ignore[func-returns-value]
    assert found is not None
    assert found.kind == "hang"
    assert time.monotonic() - begun < 10


def test_an_exception_of_the_harness_is_no_answer() -> None:
    def stumble() -> Looked:
        raise ValueError("no")

    found = looked_apart(stumble, 10)
    assert found.suspicion is not None
    assert found.suspicion.kind == "crash"

"""What a command starts ends in time, and so does the command, whatever holds it."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time

import pytest

from conrepair.ground.runtime.processes.deadline import TimeIsUp, allowed, ends_after
from conrepair.ground.runtime.shown.heartbeat import at_work


def test_jobs_get_what_is_left_less_what_is_needed_to_say_how_they_ended() -> None:
    assert allowed(600.0) == 600.0
    with ends_after(10.0, ""):
        assert 8.0 < allowed(600.0) <= 9.0
        assert allowed(3.0) == 3.0
    assert allowed(math.inf) == math.inf


def test_the_main_process_ends_in_time_and_says_at_what() -> None:
    usual = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGILL)
    ringing, started = signal.getitimer(signal.ITIMER_REAL)[0], time.monotonic()  # of who runs the tests
    with pytest.raises(TimeIsUp, match="a long thing"), ends_after(0.2, ""), at_work("a long thing"):
        _parse()
    assert time.monotonic() - started < 5
    assert (signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGILL)) == usual
    assert (signal.getitimer(signal.ITIMER_REAL)[0] > 0) is (ringing > 0)


def _parse() -> None:
    try:
        time.sleep(30)
    except Exception:  # noqa: BLE001 (as readers of files do)
        pytest.fail("it was taken for an error")


def test_what_ends_in_time_is_left_alone() -> None:
    with ends_after(0.2, ""):
        pass
    time.sleep(0.3)


def test_who_has_set_an_alarm_gets_it() -> None:
    rang: list[int] = []
    usual = signal.signal(signal.SIGALRM, lambda number, _: rang.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with ends_after(10.0, None):
            time.sleep(0.1)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.2
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with ends_after(10.0, None):
            time.sleep(0.2)
        time.sleep(0.1)
        assert rang == [signal.SIGALRM]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)


HELD = """
from conrepair.ground.runtime.processes import deadline
deadline._GRACE_SECONDS = 0.3
with deadline.ends_after(0.1, "stopped at a library"):
    sum(range(10**15))  # in C, with Python's lock: none of its handlers and threads can run
"""


def test_a_library_that_holds_the_process_is_ended_from_outside() -> None:
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (4, "stopped at a library\n")
    assert time.monotonic() - started < 20

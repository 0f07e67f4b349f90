"""What ends its process is a suspicion, not an end."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
import threading
import time
from pathlib import Path

import pytest

from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.apart import looked_apart, looking_apart
from conrepair_lab.fuzz.looking import RIGHT, Looked
from conrepair_lab.systems.registry import entry

HELD = threading.Lock()


def behind_a_lock(case: Case) -> Looked:
    if not case.network:
        os.kill(os.getpid(), signal.SIGSEGV)
    with HELD:
        return Looked(RIGHT, message=f"{len(case.network)} bytes")


def test_nobody_waits_for_a_thread_of_another_process() -> None:
    with HELD, looking_apart(behind_a_lock, 5, {"onnx"}) as looked:
        assert looked(Case(b"abc", {})) == Looked(RIGHT, message="3 bytes")
        crash = looked(Case(b"", {})).suspicion
        assert crash is not None
        assert crash.error == "SIGSEGV"
        assert looked(Case(b"ab", {})) == Looked(RIGHT, message="2 bytes")


@pytest.mark.parametrize("name", ["ort-all", "tvm-O3", "convert-import", "ort-all@1.20.1"])
def test_systems_travel(name: str) -> None:
    asked = entry(name)
    system, setting = pickle.loads(pickle.dumps((asked.runs, asked.chosen)))  # noqa: S301 (just written)
    assert (type(system), system.name, setting) == (type(asked.runs), asked.system, asked.chosen)


def test_an_answer_comes_back() -> None:
    assert looked_apart(lambda: Looked(RIGHT, near=0.5), 10) == Looked(RIGHT)


def test_a_long_answer_comes_back_whole() -> None:
    words = "a" * 300_000  # more than a pipe holds
    assert looked_apart(lambda: Looked(RIGHT, message=words), 10) == Looked(RIGHT, message=words)


def test_a_process_may_have_many_files_open() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip("it may not open as many")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    try:
        with contextlib.ExitStack() as files:
            for _ in range(1100):  # select() knows numbers below 1024
                files.enter_context(Path(os.devnull).open())
            assert looked_apart(lambda: Looked(RIGHT), 10) == Looked(RIGHT)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


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

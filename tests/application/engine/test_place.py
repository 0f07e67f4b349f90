"""Work for many, whose jobs run here or elsewhere."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from conrepair.application.engine import place
from conrepair.application.engine.place import at_once, elsewhere, executor, jobs_run_at, make_environments
from conrepair.ground.runtime.outside.environments import Environment
from conrepair.ground.runtime.processes.executor import Executor
from conrepair.ground.runtime.processes.workers import Workers
from conrepair.ground.runtime.shown.progress import ProgressDisplay


class Elsewhere:
    """Two machines, as far as anybody asks."""

    slots = 2

    @contextlib.contextmanager
    def __call__(self, here: Workers, *, memory_gb: float | None, folders: Sequence[Path]) -> Iterator[Executor]:
        yield here


def test_here_each_is_done_when_it_is_asked_for() -> None:
    done: list[int] = []
    asked = at_once(done.append, [1, 2])
    next(asked)()
    assert done == [1]
    next(asked)()
    assert done == [1, 2]
    assert not elsewhere()


def test_elsewhere_as_many_as_run_there_are_done_at_once_and_told_in_order() -> None:
    both = threading.Barrier(2, timeout=30)

    def work(item: int) -> int:
        both.wait()
        if item == 2:
            raise ValueError(item)
        return 10 * item

    with jobs_run_at(Elsewhere()):
        assert elsewhere()
        first, second, third, fourth = at_once(work, [1, 2, 3, 4])
        assert (first(), third(), fourth()) == (10, 30, 40)
        with pytest.raises(ValueError, match="2"):
            second()


def test_what_is_left_is_not_begun() -> None:
    begun: list[int] = []
    goes_on = threading.Event()

    def work(item: int) -> None:
        begun.append(item)
        assert goes_on.wait(30)

    with jobs_run_at(Elsewhere()):
        asked = at_once(work, range(10))
        next(asked)
        asked.close()
        goes_on.set()
    assert len(begun) <= 2


def test_other_machines_make_their_own_environments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[str] = []

    def make(wanted: Environment, _: ProgressDisplay) -> None:
        made.append(wanted.name)

    monkeypatch.setattr(place, "make_environment", make)
    with ProgressDisplay(quiet=True) as display:
        with jobs_run_at(Elsewhere()), executor(1, folders=(tmp_path,)):
            make_environments({"onnx", "onnxruntime==1.0"}, display)
        assert made == []
        make_environments({"onnx", "onnxruntime==1.0"}, display)
    assert made == ["onnxruntime==1.0"]

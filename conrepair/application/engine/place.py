"""Where the jobs of a command run: on this machine, if nothing else is said."""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from conrepair.application.engine.job_table import IMPORTS, jobs
from conrepair.application.engine.task import Task
from conrepair.ground.runtime.outside.environments import ENVIRONMENTS, make_environment
from conrepair.ground.runtime.outside.releases import environments_of, trim_releases
from conrepair.ground.runtime.processes.executor import Executor
from conrepair.ground.runtime.processes.workers import Workers
from conrepair.ground.runtime.shown.progress import ProgressDisplay

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


class Place(Protocol):
    """Opens executors that run jobs elsewhere."""

    @property
    def slots(self) -> int:
        """How many jobs run at a time there."""

    def __call__(
        self, here: Workers, *, memory_gb: float | None, folders: Sequence[Path]
    ) -> contextlib.AbstractContextManager[Executor]:
        """An executor.

        Args:
            here: Runs what has to run on this machine.
            memory_gb: That a worker may hold; None for a share of what's free.
            folders: Where jobs write, or what they read lies.
        """


_places: list[Place] = []


@contextlib.contextmanager
def jobs_run_at(place: Place) -> Iterator[None]:
    """Let the executors that are opened in the block run jobs elsewhere.

    Args:
        place: Where.
    """
    _places.append(place)
    try:
        yield
    finally:
        _places.pop()


def elsewhere() -> bool:
    """Whether jobs that are begun now run on other machines."""
    return bool(_places)


def at_once(work: Callable[[_Item], _Made], items: Sequence[_Item]) -> Iterator[Callable[[], _Made]]:
    """Do work whose jobs come one behind the other: for several at once, where these run elsewhere.

    Args:
        work: What is done; it opens what runs its jobs itself.
        items: For which.

    Yields:
        In their order, what returns what was made for each, or raises what kept it from being made.
    """
    if not _places:
        yield from (partial(work, item) for item in items)
        return
    pool = concurrent.futures.ThreadPoolExecutor(max(1, min(len(items), _places[-1].slots)))
    try:
        futures = [pool.submit(contextvars.copy_context().run, work, item) for item in items]
        yield from (future.result for future in futures)
    except GeneratorExit:  # nobody asks for the others any more
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown(wait=False)


def make_environments(needs: Iterable[str], display: ProgressDisplay) -> None:
    """Make the environments that jobs need, unless they run elsewhere: other machines make their own.

    Args:
        needs: Of the jobs.
        display: Shows progress.

    Raises:
        ToolEnvironmentError: if one can't be made.
    """
    wanted = () if _places else environments_of(needs)
    for within in wanted:
        make_environment(within, display)
    if any(within.name not in ENVIRONMENTS for within in wanted):
        for name in trim_releases([within.name for within in wanted]):
            display.note(f"removed environment {name}, which was used least recently")


def preparing(display: ProgressDisplay) -> Callable[[Task], None]:
    """What a scheduler does before a job starts: it makes the environments that the job needs.

    Args:
        display: Shows progress.
    """
    return lambda task: make_environments(task.needs, display)


@contextlib.contextmanager
def executor(
    count: int, module_folders: tuple[str, ...] = (), *, memory_gb: float | None = None, folders: Sequence[Path]
) -> Iterator[Executor]:
    """What runs many jobs side by side.

    Args:
        count: Worker processes on this machine.
        module_folders: As of `Workers`.
        memory_gb: As of `Workers`.
        folders: As of `Workers`.
    """
    with contextlib.ExitStack() as stack:
        imports = IMPORTS if count > 1 else None  # a single one imports what it needs, and nothing twice
        workers = Workers(count, module_folders, jobs=jobs(), memory_gb=memory_gb, folders=folders, imports=imports)
        here: Executor = stack.enter_context(workers)
        if _places:
            here = stack.enter_context(_places[-1](workers, memory_gb=memory_gb, folders=folders))
        yield here

"""What stages ask for, and how it ended: values that whoever does it, and whoever asks, have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from conrepair.ground.runtime.errors import ConrepairError, ExitCode, MissingLibraryError
from conrepair.ground.runtime.files.store import Entry
from conrepair.ground.runtime.processes.reach import CONFINED
from conrepair.ground.runtime.processes.workers import NO_LIBRARY, Failure
from conrepair.ground.runtime.shown.progress import UNSHOWN, Stage

STEPS: Mapping[str, str] = MappingProxyType(
    {
        "baked": "conrepair.application.jobs.localization:baked",
        "convert": "conrepair.application.jobs.conversion:convert",
        "describe": "conrepair.application.jobs.description:describe",
        "draw_inputs": "conrepair.application.jobs.inputs:draw_inputs",
        "execute": "conrepair.application.jobs.execution:execute",
        "localize": "conrepair.application.jobs.localization:localize",
        "optimizers": "conrepair.application.jobs.optimizers:optimizers",
        "preparation": "conrepair.application.jobs.inputs:preparation",
        "recorded": "conrepair.application.jobs.recorded:recorded",
        "rounding": "conrepair.application.jobs.localization:rounding",
    }
)
"""The jobs that a look at two files calls itself, as the table of all jobs names them."""


@dataclass(frozen=True)
class Task:
    """One job, still without its inputs.

    Attributes:
        name: Unique in a run.
        kind: A name of the table of jobs.
        payload: Makes the job's arguments, by name, from the results of what it depends on; everything that the
            result depends on must be in them, files by their hash. A `ConrepairError` of it is the task's failure.
        depends: Names of tasks.
        needs: Frameworks it imports.
        timeout: In seconds.
        keep_failure: Whether a failure that would repeat is stored: for tools that depend on nothing but their
            payload, not for what a user is about to fix.
        keep_stopped: Whether a crash, a time-out and a lack of memory are stored too. They are taken for as long as
            the limits are the same.
        continues: Whether the job goes on where one that was killed stopped. Its arguments get "journal", the folder
            of what was done, and "whose" it is; where its result is "interrupted", that is of use to this run only.
            Where its worker dies of something that the journal names, it goes on without that.
        alone: Whether it needs its machine to itself, as it measures times, or as jobs can't share its device.
        device: Where it runs, as of `reach_of`.
        environment: As of `Job`. It follows from the payload: the key of the result doesn't have it.
        progress: What the job, while it runs, has done so far, by the folder of its files; "" for nothing to say.
        parts: How long parts of the work took, in seconds, by what the job gave.
    """

    name: str
    kind: str
    payload: Callable[[Mapping[str, Entry]], Mapping[str, Any]]
    depends: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset()
    timeout: float = 600.0
    keep_failure: bool = False
    keep_stopped: bool = False
    continues: bool = False
    alone: bool = False
    device: str = CONFINED
    environment: Mapping[str, str] = field(default_factory=dict)
    progress: Callable[[Path], str] = lambda _: ""
    parts: Callable[[Any], Mapping[str, float]] = lambda _: {}


@dataclass(frozen=True)
class Result:
    """How a task ended.

    Attributes:
        entry: Its files and result, when it succeeded.
        failure: When it didn't.
        blocked_by: Name of the failed task that it depended on.
        because: How that failed, or the first that it depended on itself.
        reused: Whether it was done in an earlier run.
        seconds: How long it took in the worker (in the run that did it).
    """

    entry: Entry | None = None
    failure: Failure | None = None
    blocked_by: str | None = None
    because: Failure | None = None
    reused: bool = False
    seconds: float = 0.0


class Runner(Protocol):
    """What stages ask to run their tasks.

    Attributes:
        results: How those that were run ended, by name.
    """

    results: dict[str, Result]

    def run(self, tasks: Sequence[Task], stage: Stage = UNSHOWN) -> None:
        """Run tasks; their results go to `results`."""

    def take_stored(self, tasks: Sequence[Task], otherwise: str) -> None:
        """Settle tasks by results of earlier runs alone."""


def entries_of(task: Task, results: Mapping[str, Result]) -> dict[str, Entry]:
    """What was made of what a task depends on, by name."""
    return {name: entry for name in task.depends if (entry := results[name].entry) is not None}


def not_stored(otherwise: str) -> Result:
    """The result of a task that no earlier run did, where none is to be done.

    Args:
        otherwise: What to say.
    """
    return Result(failure=Failure("refused", "NotStored", otherwise, exit_code=int(ExitCode.USAGE)))


def blocked(task: Task, results: Mapping[str, Result]) -> Result | None:
    """The result of a task that depends on a failed one; None where it doesn't.

    Args:
        task: Whose dependencies are settled.
        results: By the task's name.
    """
    for name in task.depends:
        before = results[name]
        if before.entry is None:
            return Result(blocked_by=name, because=before.failure or before.because)
    return None


def refused(error: ConrepairError) -> Result:
    """The result of a task that an error of ours keeps from being done."""
    kind = NO_LIBRARY if isinstance(error, MissingLibraryError) else "refused"
    return Result(failure=Failure(kind, type(error).__name__, str(error), exit_code=int(error.exit_code)))

"""What a person is told of a job that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conrepair.application.report.result import OF_THE_MODEL, Problem
from conrepair.ground.runtime.errors import ExitCode, known_code
from conrepair.ground.runtime.processes.workers import Failure

if TYPE_CHECKING:
    from conrepair.application.engine.task import Result
    from conrepair.ground.runtime.files.store import Entry


def problem_of_failure(failure: Failure, *, loading: bool = False) -> Problem:
    """What a person is told of a job's failure.

    Args:
        failure: Of the job.
        loading: Whether it did nothing but load a model, so that what went wrong is that it can't be loaded.
    """
    unloadable = loading and failure.kind in OF_THE_MODEL and failure.exit_code == ExitCode.EXECUTION
    return Problem(
        message=str(failure),
        explanation=failure.explanation,
        exit_code=ExitCode.MODEL_LOAD if unloadable else known_code(failure.exit_code),
        circumstance=failure.kind in {"storage", "memory"},
        last_words=failure.last_words,
        traceback=failure.traceback,
        kind=failure.kind,
    )


def entry_of(result: Result, what: str) -> Entry:
    """What a task made that depends on no other.

    Args:
        result: Of the task.
        what: The task in words, for an error.

    Raises:
        ConrepairError: why it failed, with what's to be done about it.
    """
    if result.entry is not None:
        return result.entry
    if result.failure is None:
        raise ValueError("a task without dependencies is never blocked")
    raise problem_of_failure(result.failure).as_error(what)

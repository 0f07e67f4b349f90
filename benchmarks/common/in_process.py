"""The verbs of the command line, asked in this process: what a user is told, without a worker process for each."""

from __future__ import annotations

import concurrent.futures
import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from conrepair.cli import main
from conrepair.runtime import workers

__all__ = ["Answer", "ask"]


@dataclass(frozen=True)
class Answer:
    """What a verb said.

    Attributes:
        exit: The exit code.
        document: What it wrote as JSON; empty where it wrote none.
        words: What it wrote to standard error.
    """

    exit: int
    document: dict[str, Any] = field(default_factory=dict)
    words: str = ""


def ask(verb: str, *arguments: str) -> Answer:
    """Carry a verb out as `conrepair VERB ... --format json` does; jobs run in this process, one after the other.

    Args:
        verb: Of the command line.
        arguments: That follow it.
    """
    told, words = io.StringIO(), io.StringIO()
    with _in_this_process(), contextlib.redirect_stdout(told), contextlib.redirect_stderr(words):
        try:
            code = main([verb, *arguments, "--quiet", "--format", "json"])
        except SystemExit as error:
            code = int(error.code or 0)
    text = told.getvalue()
    return Answer(code, json.loads(text) if text.strip() else {}, words.getvalue())


class _Lane(workers.Lane):
    """A slot whose jobs are done when they're scheduled."""

    def schedule(self, arguments: tuple[Any, ...], timeout: float) -> Any:
        """Carry a job out; returns a future that is done. The limit of time is for whoever runs this process."""
        del timeout
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            future.set_result(workers.run_job(*arguments, self.jobs))
        return future


@contextlib.contextmanager
def _in_this_process() -> Iterator[None]:
    with mock.patch.object(workers, "Lane", _Lane):
        yield

"""The verbs of the command line, asked in this process: what a user is told, without a worker process for each."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from benchmarks.common.here_lane import HereLane
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
    with (
        mock.patch.object(workers, "Lane", HereLane),
        contextlib.redirect_stdout(told),
        contextlib.redirect_stderr(words),
    ):
        try:
            code = main([verb, *arguments, "--quiet", "--format", "json"])
        except SystemExit as error:
            code = int(error.code or 0)
    text = told.getvalue()
    return Answer(code, json.loads(text) if text.strip() else {}, words.getvalue())

"""The verbs of the command line, asked in this process: what a user is told, without a worker process for each."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from benchmarks.common.here_lane import HereLane
from conrepair.application.cli import main
from conrepair.diagnosis.localization.result import Localization
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.processes import workers
from conrepair.ground.runtime.typed import typed

__all__ = ["VERBS", "Answer", "ask", "ask_of", "localization"]

VERBS = ("compare", "localize", "repair")
_FAILED = "failed"


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

    @property
    def verdict(self) -> str:
        """Of the target as it was given; "failed" where the verb ended with an error."""
        if not self.document:
            return _FAILED
        row = self.document["rows"][-1]
        done = (row["repaired"] or {}).get("result")
        if done is not None:
            return str(done["before"]["verdict"])
        return str(localization(self).verdict if row["localized"]["steps"] else row["verdict"])


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


def ask_of(
    verb: str, source: Mapping[str, Any], target: Mapping[str, Any], data: DataReference, *, samples: int, batch: int
) -> Answer:
    """Carry a verb out on two sides of a case.

    Args:
        verb: Of the command line.
        source: The right side.
        target: The other one.
        data: What both are fed.
        samples: How many of it.
        batch: How many at a time, where the models leave that open.
    """
    paths = [str(side["model"]["path"]) for side in (source, target)]
    return ask(verb, *paths, "--data", str(data.path), "--samples", str(samples), "--batch-size", str(batch))


def localization(said: Answer) -> Localization:
    """What a verb that looks into layers found in the target."""
    return typed(Localization, said.document["rows"][-1]["localized"]["steps"][-1]["localization"])

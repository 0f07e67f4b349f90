"""The command that this process was started with, for the record."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextvars import ContextVar

_COMMAND: ContextVar[str] = ContextVar("command", default="")


def invoked_by(arguments: Sequence[str]) -> None:
    """Keep the command line.

    Args:
        arguments: Behind the program's name.
    """
    _COMMAND.set(shlex.join(["conrepair", *arguments]))


def invoked() -> str:
    """The command line; "" where Python called."""
    return _COMMAND.get()

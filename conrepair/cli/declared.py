"""A parser's options, made of those that a verb declares."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING
from typing import Any

from conrepair.cli.parser import Parser
from conrepair.cli.time_limit import Given
from conrepair.verbs.option import About, Options

__all__ = ["add_options"]

_SHORT = {"count": "-n", "output": "-o", "workers": "-j"}


def add_options(parser: Parser, verb: type[Options], *, required: Collection[str] = ()) -> None:
    """Declare all options that a shell has of a verb.

    Args:
        parser: Of the verb.
        verb: Its options.
        required: Those that only Python may leave out.
    """
    for name, about, default in verb.declared():
        if about.flag:
            flags = [*([_SHORT[name]] if name in _SHORT else []), about.flag]
            words = verb.meaning(name, flags=True).replace("%", "%%")
            parser[about.group].add_argument(
                *flags, dest=name, help=words, **_taken(about, default, name in required or default is MISSING)
            )


def _taken(about: About, default: Any, required: bool) -> dict[str, Any]:
    """What argparse is told of an option's value."""
    value = about.value
    if value.parsed is True:
        return {"action": "store_false" if default else "store_true"}
    action: Any = "append" if value.many else Given if about.searches else "store"
    told = {"action": action, "type": value.parsed, "default": [] if default == () else default, "required": required}
    if value.choices:
        return told | {"choices": value.choices}
    return told | {"metavar": value.metavar, "default": None if default is MISSING else told["default"]}

"""A parser's options: those that a verb declares, and those of several verbs that only a shell needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING
from typing import Any

from conrepair.cli.parser import Parser
from conrepair.cli.time_limit import Given
from conrepair.verbs.option import About, Options

__all__ = ["add_force", "add_format", "add_fresh", "add_model", "add_options", "add_output", "add_source"]

_SHORT = {"count": "-n", "output": "-o", "workers": "-j"}


def add_fresh(parser: Parser) -> None:
    """For verbs whose results are kept in the user's cache."""
    parser["general"].add_argument(
        "--fresh",
        action="store_true",
        help="Take no results from the cache (`conrepair cache`), and replace those that are there.",
    )


def add_output(parser: Parser, words: str, *, metavar: str = "FOLDER", default: str | None = None) -> None:
    """Where to write, of a verb whose own options don't say it.

    Args:
        parser: Of the verb.
        words: Whole sentences.
        metavar: What help calls it.
        default: Where to write if nobody says it.
    """
    parser["output"].add_argument("-o", "--output", metavar=metavar, default=default, help=words)


def add_force(parser: Parser) -> None:
    """For verbs that replace only what they wrote."""
    parser["output"].add_argument(
        "--force", action="store_true", help="Replace the output if it exists and this verb wrote it."
    )


def add_format(parser: Parser) -> None:
    """Text or JSON."""
    parser["output"].add_argument(
        "-f",
        "--format",
        choices=("text", "json"),
        default="text",
        help="Print text for people, or JSON for programs (default: %(default)s).",
    )


def add_source(parser: Parser) -> None:
    """The model that is right."""
    parser["models"].add_argument("source", metavar="SOURCE", help="The original model; it's right by definition.")


def add_model(parser: Parser) -> None:
    """The model of a verb that takes one."""
    parser["models"].add_argument("model", metavar="MODEL", help="Model file, or SavedModel folder.")


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

"""How long a command may take: one limit for all of it, and what searches get of that."""

from __future__ import annotations

import argparse
from typing import Any

from conrepair.cli.parser import Parser
from conrepair.verbs.numbers import seconds

__all__ = ["Given", "add_timeout", "time_limit"]

_SEARCHES = ("seconds", "advice")
_SHARE = 0.25  # of the time, for each search that nobody gave a time of its own


class Given(argparse.Action):
    """An option's value, and that somebody gave it."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any) -> None:
        """Keep both."""
        setattr(namespace, self.dest, values)
        namespace.given = {*getattr(namespace, "given", ()), self.dest}


def add_timeout(parser: Parser, what: str = "", *, searches: str = "") -> None:
    """How long the command may take.

    Args:
        parser: Of the verb.
        what: What has 600 s where no time is given for the command; "" where an option of the verb's says it.
        searches: Options of searches, whose time is added where it's given.
    """
    besides = f", and those of {searches} where given," if searches else ""
    default = f"none; each {what} has 600" if what else "none"
    parser["general"].add_argument(
        "--timeout",
        action=Given,
        type=seconds,
        default=600.0,
        metavar="S",
        help=f"End the command after S seconds{besides} with exit code 4 (default: {default}).",
    )


def time_limit(options: argparse.Namespace) -> float | None:
    """Seconds that the command has; None where nobody bounds it.

    Searches whose time is given have it besides; others get a share of the whole.

    Args:
        options: Of the command line; times of searches are changed in it.
    """
    given = getattr(options, "given", ())
    if "timeout" not in given:
        return None
    whole = float(options.timeout)
    for name in _SEARCHES:
        value = getattr(options, name, None)
        if value is None:
            continue
        if name in given:
            whole += value
        else:
            setattr(options, name, min(value, _SHARE * options.timeout))
    return whole

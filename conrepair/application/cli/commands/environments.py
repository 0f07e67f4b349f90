"""`conrepair environments`: list, make and remove the environments that converters run their tools in."""

from __future__ import annotations

import argparse

from rich.table import Column, Table

from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.ground.runtime.errors import ExitCode, UsageError
from conrepair.ground.runtime.outside.environments import (
    ENVIRONMENTS,
    Environment,
    find_environment,
    leftovers,
    make_environment,
    remove_environment,
)
from conrepair.ground.runtime.outside.releases import made_releases, named_environment
from conrepair.ground.runtime.shown.progress import ProgressDisplay, output_console, say


def environments(options: argparse.Namespace) -> int:
    """List all, or make or remove one.

    Raises:
        UsageError: if the name is missing, superfluous or unknown.
        ToolEnvironmentError: if it can't be made.
    """
    name = options.name
    if (options.action == "list") != (name is None):
        usage = "`conrepair environments`, `... make NAME` or `... remove NAME`"
        raise UsageError(f"{usage}; environments are: {', '.join(ENVIRONMENTS)}, and library==version")
    if name is None:
        _list()
        return int(ExitCode.EQUIVALENT)
    wanted = named_environment(name)
    with ProgressDisplay(quiet=options.quiet) as display:
        if options.action == "make":
            made = make_environment(wanted, display)
            say(f"{made.folder}: {made.gigabytes:.1f} GB, made in {made.seconds:.0f} s")
        else:
            removed = remove_environment(wanted, display)
            say("\n".join(f"removed {folder}" for folder in removed) or f"there is no environment {name}")
    return int(ExitCode.EQUIVALENT)


def _list() -> None:
    headings = ("environment", "state", "used by", "folder")
    table = Table(*(Column(heading, overflow="fold") for heading in headings), box=None, pad_edge=False)
    for wanted in (*ENVIRONMENTS.values(), *made_releases()):
        made = find_environment(wanted)
        users = [item.name for item in CONVERTERS.values() if item.environment == wanted.name]
        folder = str(made.folder) if made else ""
        table.add_row(wanted.name, _state(wanted), ", ".join(users), folder)
    output_console().print(table)


def _state(wanted: Environment) -> str:
    made = find_environment(wanted)
    text = (
        f"{made.gigabytes:.1f} GB" if made else f"not made (about {wanted.gigabytes:g} GB, {wanted.minutes} minutes)"
    )
    old = len(leftovers(wanted))
    return f"{text}; {old} outdated or half-made (`remove` removes them)" if old else text

"""What the verb `accuracy` does: measure systems, and show or write the table."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from pathlib import Path

from rich.console import Console

from conrepair.application.cli.next_step import tell_next
from conrepair.application.engine.session import Session
from conrepair.ground.runtime.errors import ExitCode, InferenceError
from conrepair.ground.runtime.files.outputs import Output
from conrepair.ground.runtime.files.whole import put_text
from conrepair.ground.runtime.invocation import invoked
from conrepair.ground.runtime.shown.progress import say
from conrepair.ground.runtime.words import complain
from conrepair_lab.accuracy.measured import WRONG
from conrepair_lab.campaigns.accuracy import Tables, measure_systems
from conrepair_lab.options.trace import Accuracy
from conrepair_lab.report.accuracy.page import accuracy_plot, cause_lines, json_text, page, terminal_table

_PIPED = 200


def accuracy(options: argparse.Namespace) -> int:
    """Measure systems.

    Returns:
        The exit code: 1 where an operator is off by more than it may be.
    """
    asked = Accuracy.of(vars(options))
    output = None if asked.output is None else Output(Path(asked.output).absolute(), "accuracy")
    if output is not None:
        output.check()
    with Session(quiet=options.quiet, keeps=True, fresh=options.fresh) as session:
        tables = measure_systems(asked, session)
    for name, why in tables.missing.items():
        complain(f"conrepair: {name} wasn't measured: {why}")
    if all(item.refused for item in tables.measured):
        why = next((f"{item.operator}: {item.refused}" for item in tables.measured), "none is here")
        raise InferenceError(f"no system runs any of these operators; {why}")
    if output is not None:
        _write(tables, output)
    if options.format == "json":
        say(json_text(tables.measured))
    else:
        _show(tables)
        tell_next(
            "" if output is not None else "the same command with `-o accuracy` keeps the table, a page and a plot"
        )
    if tables.missing:
        return int(ExitCode.EXECUTION)
    return int(ExitCode.DIFFERENT if any(item.faulty for item in tables.measured) else ExitCode.EQUIVALENT)


def _write(tables: Tables, output: Output) -> None:
    today = dt.datetime.now(tz=dt.UTC).date()
    with output.write() as temporary:
        temporary.mkdir()
        put_text(temporary / "accuracy.json", json_text(tables.measured))
        made_by = f"Written by `{invoked()}` on {today}."
        put_text(temporary / "accuracy.md", page(tables.measured, made_by, tables.seconds))
        put_text(temporary / "accuracy.svg", accuracy_plot(tables.measured))


def _show(tables: Tables) -> None:
    width = None if sys.stdout.isatty() else _PIPED
    console = Console(width=width)
    console.print(f"largest error of each operator in units in the last place (ulps); above {WRONG:.0f} is wrong")
    console.print(terminal_table(tables.measured))
    say("\n".join(cause_lines(tables.measured)))

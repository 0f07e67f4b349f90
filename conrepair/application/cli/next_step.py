"""The last line of a verb: what to do next, as a command that can be typed."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from conrepair.application.report.next_steps import Step, differing, fed, pair_step
from conrepair.application.verbs.options import Convert
from conrepair.ground.runtime.invocation import invoked
from conrepair.ground.runtime.path_text import typed
from conrepair.ground.runtime.shown.progress import output_console
from conrepair.verdicts.evaluate.verdict import Verdict

if TYPE_CHECKING:
    from conrepair.application.report.result import Row


def tell_next(line: str) -> None:
    """Say it, whole: a command that is broken into lines can't be pasted.

    Args:
        line: "" where there's nothing to say.
    """
    if line:
        output_console().print(Text.assemble(("next: ", "bold"), line), soft_wrap=True)


def command(verb: str, *words: str | Path, inputs: Sequence[str] = ()) -> str:
    """A command that can be pasted, in quotes.

    Args:
        verb: Of ours.
        *words: Its arguments; what lies below the current folder is named from there.
        inputs: Values of --input.
    """
    given = [word for text in inputs for word in ("--input", text)]
    return f"`{shlex.join(['conrepair', verb, *map(typed, words), *given])}`"


def after_conversion(row: Row, options: argparse.Namespace, output: Path) -> tuple[Step, ...]:
    """What helps once a model was converted; none where nothing is known.

    Args:
        row: Of the result.
        options: Of the command line that converted.
        output: The result's file or folder.
    """
    files, more = (options.model, output), fed(invoked())
    if not options.check:
        return (pair_step("compare", files, "compares the outputs of both models", *more),)
    if row.verdict is None or row.problem is not None:
        return ()
    if row.localized.problem is not None:
        return (Step(row.localized.problem.explanation),)
    if row.verdict in {Verdict.EQUIVALENT, Verdict.NOISE}:
        if options.data is None:
            count = str(8 * (options.samples or Convert.drawn))
            return (pair_step("compare", files, "compares both on more inputs", *more, "--samples", count),)
        return (pair_step("inspect", [output], "lists its operators and weights"),)
    return differing(row.verdict, files, more)

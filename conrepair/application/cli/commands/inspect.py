"""`conrepair inspect`: what a model consists of, also one that nothing here can run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Column, Table

from conrepair.application.cli.next_step import command, tell_next
from conrepair.application.engine.session import Session
from conrepair.application.pipeline.declared_inputs import input_specs
from conrepair.application.pipeline.described import Described, read_file
from conrepair.formats.models.model import Description, Model
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.path_text import model_path
from conrepair.ground.runtime.shown.progress import output_console, say

_EXAMPLE = "batch,3,224,224"


def inspect(options: argparse.Namespace) -> int:
    """Describe a file; one that can't be run as far as it can be read.

    Returns:
        The exit code.

    Raises:
        ConrepairError: why it can't be run, once what could be read was shown.
    """
    with Session(quiet=options.quiet) as session:
        found = read_file(
            model_path(options.model),
            session,
            input_specs(options.inputs),
            timeout=options.timeout,
            trust=options.trust,
        )
    if found.description is not None:
        _show(found.description, found.model, found.missing, as_json=options.format == "json")
    found.checked()
    if options.format == "text":
        tell_next(_next(found, options))
    return int(ExitCode.EQUIVALENT)


def _next(found: Described, options: argparse.Namespace) -> str:
    """A command that works as it stands; what it needs besides the file is in it."""
    inputs = found.checked().inputs
    more = ["--trust"] if options.trust else []
    if not inputs and found.missing and not options.inputs:
        example = command("inspect", options.model, *more, inputs=[_EXAMPLE])
        return f"the file doesn't say which inputs it takes: declare them, with your own sizes, as in {example}"
    if not inputs:
        return ""
    return f"{command('execute', options.model, *more, inputs=options.inputs)} runs it on random inputs"


def _show(description: Description, model: Model, missing: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        value = asdict(description) | {"precision": description.precision, "sha256": model.sha256}
        say(json.dumps(value | ({"missing": list(missing)} if missing else {}), indent=2))
        return
    table = Table(Column(style="bold"), Column(overflow="fold"), box=None, show_header=False, pad_edge=False)
    for name, text in (*description.rows(missing), ("sha256", model.sha256)):
        table.add_row(name, text)
    output_console().print(table)

"""`conrepair inspect`: what a model consists of, also one that nothing here can run."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from conrepair.frameworks.detect import detect_framework
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Description, Model, from_json, to_json
from conrepair.pipeline.evaluation import error_of, problem_of_failure
from conrepair.pipeline.options import input_specs
from conrepair.pipeline.sources import framework_needs
from conrepair.runtime.errors import ExitCode
from conrepair.runtime.progress import output_console, say
from conrepair.runtime.scratch import SCRATCH, scratch_folder
from conrepair.runtime.workers import Failure, Job, Outcome, Workers

__all__ = ["inspect"]

_TIMEOUT = 600.0


def inspect(options: argparse.Namespace) -> int:
    """Describe a file; one that can't be run as far as it can be read.

    Returns:
        The exit code.

    Raises:
        ConrepairError: why it can't be run, once what could be read was shown.
    """
    path = Path(options.model).resolve()
    inputs = input_specs(options.input)
    model = Model(detect_framework(path), str(path), model_sha256(path), inputs=inputs)
    with scratch_folder(Path(tempfile.gettempdir()), SCRATCH) as scratch, Workers(1) as workers:
        outcome = _call("describe", model, workers, scratch)
        read = _call("contents", model, workers, scratch) if isinstance(outcome, Failure) else outcome
    found = {} if isinstance(read, Failure) else read.value
    if "description" in found:
        description = from_json(Description, found["description"])
        _show(description, model, found.get("missing", ()), as_json=options.format == "json")
    if isinstance(outcome, Failure):
        what = "" if outcome.kind == "refused" else f"{model.path} can't be loaded"
        raise error_of(problem_of_failure(outcome), what)
    return int(ExitCode.EQUIVALENT)


def _show(description: Description, model: Model, missing: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        value = to_json(description) | {"precision": description.precision, "sha256": model.sha256}
        say(json.dumps(value | ({"missing": list(missing)} if missing else {}), indent=2))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    opset = f", opset {description.opset}" if description.opset else ""
    parameters = f"{description.parameters:,} ({description.precision})"
    rows = [
        ("format", f"{description.format}{opset}"),
        *(("input", str(spec)) for spec in description.inputs),
        *(("output", str(spec)) for spec in description.outputs),
        *([("parameters", parameters)] if description.parameters or not missing else []),
        ("operators", ", ".join(f"{name} {count}" for name, count in description.operators.items())),
        *(("missing", text) for text in missing),
        ("producer", description.producer or "not recorded"),
        ("sha256", model.sha256),
    ]
    for name, text in rows:
        table.add_row(name, escape(text))
    output_console().print(table)


def _call(kind: str, model: Model, workers: Workers, scratch: Path) -> Outcome:
    folder = scratch / kind
    folder.mkdir()
    payload = {"model": to_json(model)}
    needs = framework_needs(model.framework)
    return workers.call(Job(f"conrepair.pipeline.jobs:{kind}", payload, folder, needs, _TIMEOUT))

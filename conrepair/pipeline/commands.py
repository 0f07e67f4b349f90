"""What the verbs of the command line do."""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from conrepair.config.load import parse_config
from conrepair.config.model import AuditConfig
from conrepair.frameworks.detect import detect_framework, hides_inputs
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Description, Model, from_json, to_json
from conrepair.pipeline.audit import run_audit
from conrepair.pipeline.config_command import load_for_run
from conrepair.pipeline.evaluation import error_of, problem_of_failure
from conrepair.pipeline.options import dataset_of, given, given_recipe, input_specs, parse_input, slug
from conrepair.pipeline.sources import framework_needs
from conrepair.pipeline.telling_inputs import run_on_telling_inputs
from conrepair.report.result import AuditResult
from conrepair.report.summary import print_summary
from conrepair.report.verdict_table import print_verdicts
from conrepair.report.write import report_json, write_audit, write_so_far
from conrepair.runtime.errors import ExitCode
from conrepair.runtime.progress import ProgressDisplay, output_console, say
from conrepair.runtime.scratch import SCRATCH, scratch_folder
from conrepair.runtime.workers import Failure, Job, Workers

__all__ = ["audit_and_report", "compare", "inspect", "run_config"]

_TIMEOUT = 600.0


def run_config(path: str, *, fresh: bool, output: str | None, quiet: bool) -> int:
    """Run a configured audit, write its folder, show the summary.

    Args:
        path: Of the configuration.
        fresh: Reuse nothing.
        output: Instead of the configuration's output folder.
        quiet: No progress.

    Returns:
        The exit code.
    """
    file = Path(path)
    config = load_for_run(file, quiet=quiet)
    changes: dict[str, Any] = {"reuse": config.reuse and not fresh}
    if output is not None:
        changes["output"] = str(Path(output).absolute())
    return audit_and_report(config.model_copy(update=changes), file.absolute().parent, quiet=quiet, as_json=False)


def compare(options: argparse.Namespace) -> int:
    """Compare two files: an audit of one model and one conversion made elsewhere."""
    source, target = Path(options.source), Path(options.target)
    for path in (source, target):
        detect_framework(path)  # a file that isn't there is said at once
    tolerance: dict[str, Any] = {}
    if options.rtol is not None or options.atol is not None:
        # Given tolerances decide alone: the bound on the whole tensor is for the defaults.
        tolerance = given({"rtol": options.rtol, "atol": options.atol}) | {"relative_l2": None}
    inputs = [parse_input(text) for text in options.input] or None
    recipes = given_recipe(options.recipe), given_recipe(options.target_recipe or options.recipe)
    names = slug(source), slug(target)
    if names[0] == names[1]:
        names = f"{names[0]}-source", f"{names[1]}-target"
    value = {
        "name": f"compare-{names[0]}-{names[1]}",
        "output": str(Path(options.output).absolute()),
        "dataset": dataset_of(options),
        "batch_size": options.batch_size,
        "tolerance": tolerance,
        "models": [
            {"name": names[0], "path": str(source.absolute())} | given({"recipe": recipes[0], "inputs": inputs}),
            {"name": names[1], "path": str(target.absolute()), "compare_with": names[0]}
            | given({"recipe": recipes[1], "inputs": inputs if hides_inputs(target) else None}),
        ],
    }
    config = parse_config(value, "command line")
    return audit_and_report(config, Path.cwd(), quiet=options.quiet, as_json=options.format == "json")


def inspect(options: argparse.Namespace) -> int:
    """Describe a file."""
    path = Path(options.model).resolve()
    inputs = input_specs(options.input)
    model = Model(detect_framework(path), str(path), model_sha256(path), inputs=inputs)
    with scratch_folder(Path(tempfile.gettempdir()), SCRATCH) as scratch, Workers(1) as workers:
        description = _describe(model, workers, scratch)
    if options.format == "json":
        value = to_json(description) | {"precision": description.precision, "sha256": model.sha256}
        say(json.dumps(value, indent=2))
        return int(ExitCode.EQUIVALENT)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    opset = f", opset {description.opset}" if description.opset else ""
    rows = [
        ("format", f"{description.format}{opset}"),
        *(("input", str(spec)) for spec in description.inputs),
        *(("output", str(spec)) for spec in description.outputs),
        ("parameters", f"{description.parameters:,} ({description.precision})"),
        (
            "operators",
            ", ".join(f"{name} {count}" for name, count in description.operators.items()),
        ),
        ("producer", description.producer or "not recorded"),
        ("sha256", model.sha256),
    ]
    for name, text in rows:
        table.add_row(name, escape(text))
    output_console().print(table)
    return int(ExitCode.EQUIVALENT)


def audit_and_report(config: AuditConfig, base: Path, *, quiet: bool, as_json: bool) -> int:
    """Run an audit, write its folder, show the result.

    Args:
        config: What to do.
        base: Folder that its relative paths start from.
        quiet: No progress.
        as_json: Show the whole report instead of tables.

    Returns:
        The exit code.
    """
    with contextlib.ExitStack() as use:
        with ProgressDisplay(quiet=quiet) as display:
            result = run_on_telling_inputs(
                config, lambda chosen, stack: run_audit(chosen, base, display, stack, write_so_far), use, display.note
            )
        write_audit(result, base / config.output / "store")
    if as_json:
        say(json.dumps(report_json(result), indent=2))
    else:
        _show(result)
    return result.exit_code


def _show(result: AuditResult) -> None:
    """Show the result; architectures as a table of verdicts, or many would fill many screens."""
    if any(row.model not in result.architectures for row in result.rows):
        print_summary(result, output_console())
    if result.architectures:
        print_verdicts(result, output_console())


def _describe(model: Model, workers: Workers, scratch: Path) -> Description:
    folder = scratch / "describe"
    folder.mkdir()
    job = Job(
        "conrepair.pipeline.jobs:describe",
        {"model": to_json(model)},
        folder,
        framework_needs(model.framework),
        _TIMEOUT,
    )
    outcome = workers.call(job)
    if isinstance(outcome, Failure):
        what = "" if outcome.kind == "refused" else f"{model.path} can't be loaded"
        raise error_of(problem_of_failure(outcome), what)
    return from_json(Description, outcome.value["description"])

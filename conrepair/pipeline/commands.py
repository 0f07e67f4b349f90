"""What the verbs of the command line do."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.text import Text

from conrepair.config.load import parse_config
from conrepair.config.model import AuditConfig
from conrepair.frameworks.detect import detect_framework
from conrepair.pipeline.audit import run_audit
from conrepair.pipeline.config_command import load_for_run
from conrepair.pipeline.next_step import next_step
from conrepair.pipeline.options import dataset_of, given, given_recipe, parse_input, slug
from conrepair.report.result import AuditResult
from conrepair.report.summary import print_summary
from conrepair.report.verdict_table import print_verdicts
from conrepair.report.write import report_json, write_audit, write_so_far
from conrepair.runtime.progress import ProgressDisplay, output_console, say

__all__ = ["audit_and_report", "compare", "run_config"]


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
        "stages": {"localize": True},
        "localize": {"when": "excused"},  # what all verbs say of a target is one
        "models": [
            {"name": names[0], "path": str(source.absolute())} | given({"recipe": recipes[0], "inputs": inputs}),
            {"name": names[1], "path": str(target.absolute()), "compare_with": names[0]}
            | given({"recipe": recipes[1]}),
        ],
    }
    config = parse_config(value, "command line")
    return audit_and_report(
        config,
        Path.cwd(),
        quiet=options.quiet,
        as_json=options.format == "json",
        then=lambda result: next_step(result, options),
    )


def audit_and_report(
    config: AuditConfig,
    base: Path,
    *,
    quiet: bool,
    as_json: bool,
    then: Callable[[AuditResult], str] = lambda _: "",
) -> int:
    """Run an audit, write its folder, show the result.

    Args:
        config: What to do.
        base: Folder that its relative paths start from.
        quiet: No progress.
        as_json: Show the whole report instead of tables.
        then: What to do next, in words; "" for nothing.

    Returns:
        The exit code.
    """
    with contextlib.ExitStack() as use:
        with ProgressDisplay(quiet=quiet) as display:
            result = run_audit(config, base, display, use, write_so_far)
        write_audit(result, base / config.output / "store")
    if as_json:
        say(json.dumps(report_json(result), indent=2))
    else:
        _show(result)
        if line := then(result):
            output_console().print(Text.assemble(("next: ", "bold"), line))
    return result.exit_code


def _show(result: AuditResult) -> None:
    """Show the result; architectures as a table of verdicts, or many would fill many screens."""
    if any(row.model not in result.architectures for row in result.rows):
        print_summary(result, output_console())
    if result.architectures:
        print_verdicts(result, output_console())

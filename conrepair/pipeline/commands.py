"""What the verbs of the command line do."""

from __future__ import annotations

import argparse
import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conrepair.pipeline.next_step import after_comparison, tell_next
from conrepair.pipeline.options import asked_of
from conrepair.pipeline.session import Session
from conrepair.pipeline.settings import answer_settings
from conrepair.pipeline.verbs import compare_pair
from conrepair.report.result import AuditResult
from conrepair.report.summary import print_summary
from conrepair.report.verdict_table import print_verdicts
from conrepair.report.write import report_json, write_audit, write_so_far
from conrepair.runtime.progress import ProgressDisplay, output_console, say

if TYPE_CHECKING:
    from conrepair.config.model import AuditConfig

__all__ = ["audit_and_report", "compare", "run_and_write", "run_config"]

_SECONDS = 600.0  # for each model


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
    from conrepair.pipeline.config_command import load_for_run

    file = Path(path)
    config = load_for_run(file, quiet=quiet)
    changes: dict[str, Any] = {"reuse": config.reuse and not fresh}
    if output is not None:
        changes["output"] = str(Path(output).absolute())
    return audit_and_report(config.model_copy(update=changes), file.absolute().parent, quiet=quiet, as_json=False)


def compare(options: argparse.Namespace) -> int:
    """Compare two files by their answers."""
    asked = asked_of(options, layers=False)
    asked.check()
    output = None if options.output is None else Path(options.output).absolute()
    settings = answer_settings(options.rtol, options.atol, timeout=_SECONDS)
    with Session(output, quiet=options.quiet) as session:
        found = compare_pair(asked, settings, session, folder=output)
        if output is not None:
            write_audit(found.run, session.store.root)
        _tell(found.run, as_json=options.format == "json", files=output is not None)
    if options.format == "text":
        tell_next(after_comparison(found.row, options))
    return found.exit_code


def audit_and_report(
    config: AuditConfig,
    base: Path,
    *,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run an audit, write its folder, show the result.

    Args:
        config: What to do.
        base: Folder that its relative paths start from.
        quiet: No progress.
        as_json: Show the whole report instead of tables.

    Returns:
        The exit code.
    """
    result = run_and_write(config, base, quiet=quiet)
    _tell(result, as_json=as_json)
    return result.exit_code


def _tell(result: AuditResult, *, as_json: bool, files: bool = True) -> None:
    """Show a result: the whole report as JSON, or tables."""
    if as_json:
        say(json.dumps(report_json(result), indent=2))
    else:
        _show(result, files=files)


def run_and_write(config: AuditConfig, base: Path, *, quiet: bool) -> AuditResult:
    """Run an audit, and write its folder.

    Args:
        config: What to do.
        base: Folder that its relative paths start from.
        quiet: No progress.
    """
    from conrepair.pipeline.audit import run_audit

    with contextlib.ExitStack() as use:
        with ProgressDisplay(quiet=quiet) as display:
            result = run_audit(config, base, display, use, write_so_far)
        write_audit(result, base / config.output / "store")
    return result


def _show(result: AuditResult, *, files: bool) -> None:
    """Show the result; architectures as a table of verdicts, or many would fill many screens."""
    if any(row.model not in result.architectures for row in result.rows):
        print_summary(result, output_console(), files=files)
    if result.architectures:
        print_verdicts(result, output_console())

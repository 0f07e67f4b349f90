"""What the verbs of the command line do."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conrepair.pipeline.next_step import after_comparison, tell_next
from conrepair.pipeline.options import files_of
from conrepair.pipeline.session import Session
from conrepair.pipeline.settings import answer_settings
from conrepair.pipeline.verbs import compare_pair
from conrepair.report.audit_folder import write_audit, write_so_far
from conrepair.report.console import print_result
from conrepair.report.result import AuditResult
from conrepair.report.saved import result_text
from conrepair.runtime.progress import ProgressDisplay, output_console, say
from conrepair.verbs.options import Compare

if TYPE_CHECKING:
    from conrepair.config.model import AuditConfig

__all__ = ["audit_and_report", "compare", "run_and_write", "run_config"]


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
    return _run_all(config.model_copy(update=changes), file.absolute().parent, quiet=quiet)


def compare(options: argparse.Namespace) -> int:
    """Compare two files by their answers."""
    verb = Compare.of(vars(options))
    asked = files_of(verb)
    asked.check()
    output = None if options.output is None else Path(options.output).absolute()
    settings = answer_settings(verb)
    with Session(quiet=options.quiet, keeps=not options.trust, fresh=options.fresh) as session:
        found = compare_pair(asked, settings, session, folder=output)
        if output is not None:
            write_audit(found.run, session.store.root)
        _tell(found.run, as_json=options.format == "json", files=output is not None)
    if options.format == "text":
        source = found.run.rows[0]
        tell_next(after_comparison(found.row, options) if source.problem is None else "")
    return found.exit_code


def _run_all(config: AuditConfig, base: Path, *, quiet: bool) -> int:
    """Run the audit, if there's something to audit, and make the networks that are wanted; the worst exit code."""
    from conrepair.pipeline.from_config import check_generation

    check_generation(config, base)
    codes = [0]
    if config.models or config.architectures:
        codes.append(audit_and_report(config, base, quiet=quiet, as_json=False))
    if config.generate is not None:
        from conrepair.pipeline.generate_command import generate_configured

        codes.append(generate_configured(config, base, quiet=quiet))
    return max(codes)


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
        as_json: Show the document instead of tables.

    Returns:
        The exit code.
    """
    result = run_and_write(config, base, quiet=quiet)
    _tell(result, as_json=as_json)
    return result.exit_code


def _tell(result: AuditResult, *, as_json: bool, files: bool = True) -> None:
    """Show a result: the document, or tables."""
    if as_json:
        say(result_text(result))
    else:
        print_result(result, output_console(), result.folder if files else None)


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

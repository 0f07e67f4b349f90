"""`conrepair run`: a configured audit, and the networks that it wants."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conrepair.application.cli.several import tell
from conrepair.application.cli.shared import engine_of
from conrepair.application.config.read import load_for_run
from conrepair.application.pipeline.audit import run_and_write
from conrepair.application.report.changes.baseline import held_against
from conrepair.ground.runtime.errors import ConfigError

if TYPE_CHECKING:
    from conrepair.application.config.model import AuditConfig
    from conrepair.application.report.result import AuditResult


def run_config(options: argparse.Namespace) -> int:
    """Run a configured audit, write its folder, show the summary.

    Args:
        options: "config" (its path), "fresh" (reuse nothing), "output" (instead of the configuration's), "quiet" (no
            progress), and those of `conrepair.application.cli.shared`.

    Returns:
        The exit code.
    """
    file = Path(options.config)
    config = load_for_run(file, quiet=options.quiet)
    changes: dict[str, Any] = {
        "reuse": config.reuse and not options.fresh,
        "engine": engine_of(options, config.engine),
    }
    if options.output is not None:
        changes["output"] = str(Path(options.output).absolute())
    config = config.model_copy(update=changes)
    with config.engine.opened(quiet=options.quiet):
        judged = functools.partial(held_against, file=options.baseline, update=options.update_baseline)
        return _run_all(config, file.absolute().parent, quiet=options.quiet, form=options.format, judged=judged)


def _run_all(
    config: AuditConfig, base: Path, *, quiet: bool, form: str, judged: Callable[[AuditResult], AuditResult]
) -> int:
    """Run the audit, and what else is asked for; the worst exit code."""
    if problems := config.part_problems(base):
        raise ConfigError("\n".join(problems))
    codes = [0]
    if config.models or config.architectures:
        codes.append(audit_and_report(config, base, quiet=quiet, form=form, judged=judged))
    for _, section, part in config.asked:
        codes.append(part.run(section, config, base, quiet=quiet))
    return max(codes)


def audit_and_report(
    config: AuditConfig,
    base: Path,
    *,
    quiet: bool,
    form: str,
    judged: Callable[[AuditResult], AuditResult] | None = None,
) -> int:
    """Run an audit, write its folder, show the result.

    Args:
        config: What to do.
        base: Folder that its relative paths start from.
        quiet: No progress.
        form: Of what is printed, as `conrepair.application.cli.several.tell` has it.
        judged: Makes of the result what is written and shown.

    Returns:
        The exit code.
    """
    result = run_and_write(config, base, quiet=quiet, judged=judged)
    tell(result, form, result.folder)
    return result.exit_code

"""What `conrepair matrix` does."""

from __future__ import annotations

import argparse
from pathlib import Path

from conrepair.application.config.read import load_for_run
from conrepair.application.pipeline.matrix import run_matrix
from conrepair.application.report.audit_folder import write_audit
from conrepair.application.report.folder import run_output
from conrepair.application.report.route_matrix import matrix_markdown
from conrepair.ground.runtime.files.outputs import Output
from conrepair.ground.runtime.files.whole import put_text
from conrepair.ground.runtime.shown.progress import ProgressDisplay, say


def matrix(options: argparse.Namespace) -> int:
    """Run the matrix of a configuration, write it as Markdown, and the folders of its audits.

    Returns:
        See `Matrix.exit_code`.
    """
    file = Path(options.config)
    config = load_for_run(file, quiet=options.quiet)
    base = file.absolute().parent
    usual = base / config.output / config.name
    target = usual / "route-matrix.md" if options.output is None else Path(options.output)
    own = options.output is None  # in the audit's folder it's part of that, and goes with it
    table = run_output(usual, "audit") if own else Output(target.absolute(), "matrix", beside=True)
    table.check()
    with ProgressDisplay(quiet=options.quiet) as display:
        result = run_matrix(config, base, display)
    for audit in result.audits:
        write_audit(audit, base / config.output / "store")
    text = matrix_markdown(result)
    with table.write(parts=True) if own else table.write() as temporary:
        put_text(temporary / target.name if own else temporary, text)
    say(f"{text}\nWritten to {target}.")
    return result.exit_code

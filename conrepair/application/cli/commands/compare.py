"""`conrepair compare`: two files by their answers; needs no configuration and no data."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from conrepair.application.cli.next_step import after_comparison, tell_next
from conrepair.application.cli.several import tell
from conrepair.application.engine.session import Session
from conrepair.application.pipeline.pair import compare_pair, pair_of
from conrepair.application.report.audit_folder import write_audit
from conrepair.application.report.changes.baseline import held_against
from conrepair.application.verbs.options import Compare


def compare(options: argparse.Namespace) -> int:
    """Compare two files by their answers."""
    pair = pair_of(Compare.of(vars(options)), shown=options.output is not None or options.format != "text")
    output = None if options.output is None else Path(options.output).absolute()
    with Session(quiet=options.quiet, keeps=not options.trust, fresh=options.fresh) as session:
        found = compare_pair(pair, session, folder=output)
        run = found.run.rows[0].ran.run
        random = run is not None and bool(run.unsteady)
        found = dataclasses.replace(
            found, run=held_against(found.run, options.baseline, update=options.update_baseline)
        )
        if output is not None:
            write_audit(found.run, session.store.root)
        tell(found.run, as_json=options.format == "json", folder=output and found.run.folder)
    if options.format == "text":
        source = found.run.rows[0]
        tell_next(after_comparison(found.row, options, random=random) if source.problem is None else "")
    return found.exit_code

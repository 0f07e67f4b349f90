"""`conrepair compare`: two files by their answers; needs no configuration and no data."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from conrepair.application.cli.next_step import tell_next
from conrepair.application.cli.several import tell
from conrepair.application.engine.session import Session
from conrepair.application.pipeline.pair import compare_pair, pair_of
from conrepair.application.report.audit_folder import write_audit
from conrepair.application.report.changes.baseline import held_against, wants_layers
from conrepair.application.report.next_steps import next_steps, sentence
from conrepair.application.verbs.options import Compare
from conrepair.verdicts.evaluate.verdict import Verdict


def compare(options: argparse.Namespace) -> int:
    """Compare two files by their answers."""
    held = options.baseline is not None or options.update_baseline
    layers = wants_layers(options.baseline, options.target, update=options.update_baseline)
    shown = held or options.output is not None or options.format == "json"  # a baseline's figures are of all inputs
    pair = pair_of(Compare.of(vars(options)), shown=shown)
    if layers:
        pair = dataclasses.replace(pair, settings=dataclasses.replace(pair.settings, when="always"))
    output = None if options.output is None else Path(options.output).absolute()
    with Session(quiet=options.quiet, keeps=not options.trust, fresh=options.fresh) as session:
        found = compare_pair(pair, session, folder=output)
        run = held_against(found.run, options.baseline, update=options.update_baseline)
        found = dataclasses.replace(found, run=run)
        if output is not None:
            write_audit(found.run, session.store.root)
        tell(found.run, options.format, output and found.run.folder)
        steps = next_steps(found.run)  # while the outputs are there
    said = found.row.problem is not None and found.row.verdict is not Verdict.UNDEPLOYABLE
    if options.format != "json" and not said:
        tell_next(sentence(steps))
    return found.exit_code

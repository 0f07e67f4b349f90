"""`conrepair localize`: where a converted file stops being its source; needs no configuration and no data."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from conrepair.application.cli.several import each_target, tell
from conrepair.application.engine.session import Session
from conrepair.application.pipeline.pair import localize_pair, pair_of
from conrepair.application.pipeline.settings import LIBRARIES
from conrepair.application.report.changes.baseline import held_against
from conrepair.application.report.folder import check_folder
from conrepair.application.verbs.options import Localize
from conrepair.ground.runtime.errors import UsageError


def localize(options: argparse.Namespace) -> int:
    """Localize between a source and each of its targets, with the models between them if they are given.

    Returns:
        The exit code: 0 where nothing is wrong, 1 where something is.

    Raises:
        ConrepairError: if a file can't be loaded or looked into.
    """
    if options.between and len(options.targets) > 1:
        raise UsageError("--intermediate names models on the way to one converted model: name only one.")
    if not options.targets and options.backend == LIBRARIES.name:
        raise UsageError("the following arguments are required: CONVERTED, or --backend, which runs the original")
    options.targets = options.targets or [options.source]
    with Session(quiet=options.quiet, keeps=not options.trust, fresh=options.fresh) as session:
        return each_target(options, lambda one: _localize(one, session))


def _localize(options: argparse.Namespace, session: Session) -> int:
    folder = None if options.output is None else Path(options.output).absolute()
    held = options.baseline is not None or options.update_baseline
    pair = pair_of(Localize.of(vars(options)), shown=held or folder is not None or options.format == "json")
    if folder is not None:
        check_folder(folder, "localize", pair.inputs)
    found = localize_pair(pair, session)
    run = held_against(found.run, options.baseline, update=options.update_baseline)
    found = dataclasses.replace(found, run=run)
    if folder is not None:
        found.save(folder)
    tell(found.run, options.format, folder)
    return found.exit_code

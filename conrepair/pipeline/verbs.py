"""Compare, localize and repair two files: what Python and the command line share."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from pathlib import Path

from conrepair.localize.steps import attribute_steps
from conrepair.pipeline.pair import Asked, layered_rows, subjects_of_pair
from conrepair.pipeline.session import Session
from conrepair.pipeline.settings import Settings
from conrepair.report.localization.about import about_step
from conrepair.report.results import Compared, Localized, Repaired
from conrepair.report.write import check_folder
from conrepair.runtime.interruption import ended_gently
from conrepair.runtime.journal import end_early
from conrepair.runtime.store import journals

__all__ = ["compare_pair", "localize_pair", "repair_pair"]


def compare_pair(asked: Asked, settings: Settings, session: Session, *, folder: Path | None = None) -> Compared:
    """Run both models, and judge the target's answers.

    Args:
        asked: The files.
        settings: Tolerances.
        session: Where.
        folder: Where the report will be.

    Raises:
        ConrepairError: if a file or the data is unusable.
    """
    asked.check()
    subjects, notes = subjects_of_pair(asked)
    name = f"compare-{asked.names[0]}-{asked.names[-1]}"
    if folder is not None:
        check_folder(folder / name, [path for path in (asked.source, asked.target, asked.data) if path is not None])
    result = session.run(
        settings, subjects, name=name, folder=folder and folder / name, asked=asked.to_dict(), notes=notes
    )
    return Compared(run=result, store=session.store.root)


def localize_pair(asked: Asked, settings: Settings, session: Session) -> Localized:
    """Name the layers in which the target stops being its source.

    Args:
        asked: The files.
        settings: With the stage that localizes.
        session: Where.

    Raises:
        ConrepairError: if a file can't be loaded or looked into.
    """
    result, rows = layered_rows(asked, settings, session)
    _, *middle, row = rows
    found = row.localized.result
    if found is None or not row.localized.steps:
        raise ValueError(f"{asked.target} was not localized, and nothing says why")
    if asked.between:
        steps = [(path.name, item.localized.result) for path, item in zip(asked.between, middle, strict=True)]
        found = attribute_steps(found, steps, asked.target.name)
    about = about_step(row.localized.steps[-1], row, result)
    if asked.compiled:  # the run has a copy of it
        about = dataclasses.replace(about, build=str(asked.target))
    return Localized(localization=found, about=about)


def repair_pair(asked: Asked, settings: Settings, session: Session) -> Repaired:
    """Mend the target in its own format; the first Ctrl-C ends the search with the best that was verified.

    Args:
        asked: The files.
        settings: With the stage that repairs.
        session: Where.

    Raises:
        ConrepairError: if a file can't be loaded or looked into.
    """
    for journal in journals(session.store.root):
        end_early(journal, wanted=False)
    with contextlib.ExitStack() as stack:
        stack.enter_context(ended_gently(lambda: _end_searches(session.store.root)))
        _, rows = layered_rows(asked, settings, session)
    return Repaired(row=rows[-1])


def _end_searches(store: Path) -> bool:
    """Let them end with what they have; whether there are any."""
    for journal in (found := journals(store)):
        end_early(journal)
    if found:
        sys.stderr.write("conrepair: the best that was verified is being written; Ctrl-C again stops at once\n")
    return bool(found)

"""Which rows of an audit are repaired, and what becomes of the results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from conrepair.engine.scheduler import Result
from conrepair.frameworks.model import from_json
from conrepair.repairs.outcomes import Advice
from conrepair.repairs.result import RepairResult
from conrepair.report.repair.summary import advice_line
from conrepair.report.result import Problem, RepairedTarget, Row

__all__ = ["rows_to_repair", "with_advice", "with_repair"]


def rows_to_repair(rows: Sequence[Row]) -> list[int]:
    """Places of the rows whose targets have layers at fault; a build isn't repaired for what its model has wrong."""
    found = ((place, row.localized.own) for place, row in enumerate(rows) if row.localized.result is not None)
    return [place for place, own in found if own is not None and own.faults and rows[place].localized.problem is None]


def with_repair(row: Row, result: Result, problem_of: Callable[[Result], Problem]) -> Row:
    """A row with what became of its repair.

    Args:
        row: Of a target.
        result: Of the task.
        problem_of: Explains a task without one.
    """
    if result.entry is None:
        return dataclasses.replace(row, repaired=RepairedTarget(problem=problem_of(result)))
    repair = from_json(RepairResult, result.entry.result["repair"])
    if repair.model is not None:
        path = str(result.entry.folder / repair.model.path)
        repair = dataclasses.replace(repair, model=dataclasses.replace(repair.model, path=path))
    if repair.patch is not None:
        repair = dataclasses.replace(repair, patch=str(result.entry.folder / repair.patch))
    return dataclasses.replace(row, repaired=RepairedTarget(result=repair))


def with_advice(row: Row, advice: tuple[Advice, ...]) -> Row:
    """A row with other ways to convert; where nothing could be repaired, that is said with the reason.

    Args:
        row: Of a target with layers at fault.
        advice: In the order in which they were tried.
    """
    line, problem = advice_line(advice), row.repaired.problem
    if problem is not None and line:
        words = "\n".join(filter(None, (problem.explanation, f"advice: {line}")))
        problem = dataclasses.replace(problem, explanation=words)
    return dataclasses.replace(row, repaired=dataclasses.replace(row.repaired, advice=advice, problem=problem))

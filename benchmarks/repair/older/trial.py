"""One conversion: audited, localized and repaired on photos, and what came out audited once more.

All audits of a run share a store, so that a source runs once for all its targets.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.repair.older.cases import RIGHT, OlderCase
from benchmarks.repair.older.rows import OlderRow
from conrepair.application.config.load import parse_config
from conrepair.application.pipeline.audit import run_audit
from conrepair.application.report.result import AuditResult, Row
from conrepair.diagnosis.repairs.edits import SetRecipe, in_words
from conrepair.diagnosis.repairs.patch import Patch, read_patch
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.shown.progress import ProgressDisplay

__all__ = ["audited"]

_SOURCE, _TARGET = "source", "target"
_TIMEOUT = 1200.0
_LOCALIZED = 4
_MEMORY_GB = 8.0


def audited(
    case: OlderCase, source: Mapping[str, Any], target: Mapping[str, Any], photos: int, folder: Path
) -> OlderRow:
    """Audit, localize and repair a case's target, and measure what came out.

    Args:
        case: Which.
        source: Side.
        target: Side.
        photos: How many at most.
        folder: For audits; those of other cases may have been there before.

    Raises:
        ConrepairError: if the target doesn't run, can't be localized or repaired.
    """
    started = time.perf_counter()
    right = _model(_SOURCE, source["model"], {"base": RIGHT})
    fed: dict[str, Any] = {"base": case.recipe}
    ours, row = _audit([right, _model(_TARGET, target["model"], fed)], photos, folder, repair=True)
    seconds = time.perf_counter() - started
    located, repair = row.localized.result, row.repaired.result
    again, patch = target["model"], Patch()
    if repair is not None:
        patch = Patch() if repair.patch is None else read_patch(Path(repair.patch))[0]
        if repair.model is not None:
            again = {**again, "path": repair.model.path, "factory": None}
        if repair.recipe is not None:
            fed = dict(repair.recipe)
    after = row
    if patch.edits:
        _, after = _audit([right, _model(_TARGET, again, fed)], photos, folder, repair=False)
    faults = () if located is None else located.faults
    left = faults if repair is None else repair.after.faults
    return OlderRow(
        case.name,
        "measured",
        photos=0 if row.ran.run is None else row.ran.run.count,
        classes=_classes(ours),
        before=_differing(row),
        after=_differing(after),
        found=tuple(fault.kind.value for fault in faults),
        recipe=tuple(words for edit in patch.edits if isinstance(edit, SetRecipe) for words in edit.changes),
        edits=tuple(map(in_words, patch.of_file)),
        left=tuple(fault.kind.value for fault in left),
        seconds=seconds,
    )


def _model(name: str, model: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A model as a configuration has it."""
    entry: dict[str, Any] = {"name": name, "recipe": dict(recipe)}
    if name == _TARGET:
        entry["compare_with"] = _SOURCE
    if model["factory"] is None:
        return entry | {"path": model["path"]}
    inputs = [{"name": spec["name"], "shape": spec["shape"], "dtype": spec["dtype"]} for spec in model["inputs"]]
    made = {"factory": model["factory"]["target"], "kwargs": model["factory"]["kwargs"], "weights": model["path"]}
    return entry | made | {"inputs": inputs}


def _audit(models: Sequence[Mapping[str, Any]], photos: int, folder: Path, *, repair: bool) -> tuple[Row, Row]:
    """The rows of source and target."""
    config = {
        "output": str(folder),
        "dataset": {"zoo": "photos", "limit": photos},
        "limits": {"workers": 1, "seconds": _TIMEOUT, "memory_gb": _MEMORY_GB},
        "stages": {"localize": repair, "repair": repair},
        "localize": {"samples": _LOCALIZED},
        "models": list(models),
    }
    with contextlib.ExitStack() as stack:
        display = stack.enter_context(ProgressDisplay(quiet=True))
        result = run_audit(parse_config(config, "benchmark"), Path.cwd(), display, stack)
        source, target = (_row(result, name) for name in (_SOURCE, _TARGET))
        problem = source.problem or target.problem or target.localized.problem or target.repaired.problem
    if problem is not None:
        raise ConrepairError(problem.message)
    return source, target


def _row(result: AuditResult, name: str) -> Row:
    return next(row for row in result.rows if row.model == name)


def _classes(row: Row) -> int:
    """How many classes are some photo's best one."""
    return 0 if row.ran.run is None else len(np.unique(next(iter(row.ran.run.arrays.values())).argmax(-1)))


def _differing(row: Row) -> float | None:
    """Share of photos whose best class differs."""
    worst = None if row.comparison is None else row.comparison.worst
    return None if worst is None or worst.answers is None else worst.answers.top1_differs / worst.answers.samples

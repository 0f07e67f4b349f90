"""Inputs on which an error is clearer."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from conrepair.cases.case import Case
from conrepair.fuzz.case_file import case_file
from conrepair.metrics.ulps import is_real
from conrepair.runtime.errors import ConrepairError
from conrepair.systems.system import Setting, System
from conrepair.tracing.exact_side import ExactSide, over_bound
from conrepair.tracing.search.space import HIGH, LOW, space_of
from conrepair.tracing.searching import Sides, search_inputs
from conrepair.truth.bound import Analysis

__all__ = ["EVALUATIONS", "worse"]

EVALUATIONS = 200


def worse(case: Case, system: System, setting: Setting, folder: Path, *, seconds: float = 20.0) -> Case | None:
    """Search inputs on which a system's error is as many bounds as can be found.

    Args:
        case: Whose real inputs are varied; others stay.
        system: Which.
        setting: How it's run.
        folder: For files.
        seconds: For the search.

    Returns:
        None where nothing can be searched.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        try:
            runnable = system.open(case_file(case, Path(made)), setting, Path(made))
            exact = ExactSide(Analysis(case.model), runnable.inputs, runnable.outputs)
            kept = [{name: array for name, array in case.inputs.items() if not is_real(array)}]
            size = max([HIGH, *(float(abs(array).max()) for array in case.inputs.values() if is_real(array))])
            space = space_of(runnable.inputs, min(LOW, -size), size, around=kept, seed=0)
            found = search_inputs(
                Sides(runnable, exact, space, functools.partial(over_bound, exact)),
                space,
                "mega",
                evaluations=EVALUATIONS,
                seconds=seconds,
                seed=0,
            )
        except ConrepairError:
            return None
    best = next(iter(found.best), None)
    return None if best is None else Case(case.network, dict(best.feeds), case.options)

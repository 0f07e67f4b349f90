"""Schedules that were measured: MetaSchedule, with a database that is kept and can be given to the next build.

Candidates are built and run in this process, which is a worker: a kernel that crashes ends the worker, and that's a
result. MetaSchedule's own builder starts processes of its own, whose start-up takes longer than a candidate.
"""

from __future__ import annotations

import importlib.metadata
import logging
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from conrepair.runtime.errors import ConversionError

__all__ = ["DATABASE", "check_tuning", "tuned_schedules"]

DATABASE = "tuning"
_LIBRARY = "apache-tvm-ffi"
_CRASHING = {"0.1.15.post1", "0.1.15.post2"}
_WORKING = "0.1.14.post1"
_SEED = 0
_CANDIDATES_AT_ONCE = 16


def tuned_schedules(target: Any, folder: Path, trials: int, database: str | None) -> Any:
    """A pass that measures candidates for each kernel, and takes the fastest.

    Args:
        target: `tvm.target.Target`.
        folder: Of the build; the database becomes its subfolder `tuning`.
        trials: How many candidates are measured, over all kernels. What a database holds already counts as measured.
        database: Folder of an earlier tuning, which is copied and continued.
    """
    import tvm
    from tvm import relax
    from tvm.s_tir import meta_schedule

    def tune(module: Any, _: Any) -> Any:
        place = folder / DATABASE
        place.mkdir()
        for file in sorted(Path(database).glob("*.json")) if database is not None else []:
            shutil.copyfile(file, place / file.name)
        records = meta_schedule.database.JSONDatabase(work_dir=str(place))
        missing = trials - len(records)
        if missing > 0:
            _measure(module, target, place, records, missing)
        with target, records:
            return relax.transform.MetaScheduleApplyDatabase()(module)

    return tvm.transform.module_pass(tune, opt_level=0, name="ApplyTuned")


def check_tuning() -> None:
    """Refuse to tune where writing a kernel to the database ends the process.

    Raises:
        ConversionError: if so.
    """
    version = importlib.metadata.version(_LIBRARY)
    if version in _CRASHING:
        raise ConversionError(
            f"MetaSchedule crashes with {_LIBRARY} {version}: it can't write kernels to its database. Install "
            f"{_LIBRARY} {_WORKING}, or choose another `setting`"
        )


def _measure(module: Any, target: Any, place: Path, records: Any, trials: int) -> None:
    from tvm.s_tir import meta_schedule

    from conrepair.backends.tvm.measuring import builder, runner

    with tempfile.TemporaryDirectory() as logs, target:
        tasks, weights = meta_schedule.relax_integration.extracted_tasks_to_tune_contexts(
            meta_schedule.relax_integration.extract_tasks(module, target), logs, strategy="replay-trace", seed=_SEED
        )
        sys.stderr.write(f"tuning {len(tasks)} kernels, {trials} trials\n")
        logging.getLogger("tvm.s_tir.meta_schedule").setLevel(logging.WARNING)
        meta_schedule.tune.tune_tasks(
            tasks=tasks,
            task_weights=weights,
            work_dir=str(place),
            max_trials_global=trials,
            num_trials_per_iter=min(_CANDIDATES_AT_ONCE, max(1, trials // max(1, len(tasks)))),
            builder=builder(),
            runner=runner(),
            database=records,
            cost_model="random",
        )

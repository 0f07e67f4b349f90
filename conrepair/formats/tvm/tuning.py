"""Schedules that were measured: MetaSchedule, with a database that is kept and can be given to the next build.

Candidates are built and run in this process, which is a worker: a kernel that crashes ends the worker, and that's a
result. MetaSchedule's own builder starts processes of its own, whose start-up takes longer than a candidate.
"""

from __future__ import annotations

import importlib.metadata
import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conrepair.formats.tvm.target import needs_bridge
from conrepair.ground.runtime.errors import ConfigError, ConversionError, DeviceError

DATABASE = "tuning"
_RECORDS = "database_tuning_record.json"
_TALLY = "done"
_LIBRARY = "apache-tvm-ffi"
_CRASHING = {"0.1.15.post1", "0.1.15.post2"}
_WORKING = "0.1.14.post1"
_CANDIDATES_AT_ONCE = 16


def tuned_schedules(
    target: Any, folder: Path, trials: int, database: str | None, counts: dict[str, int]
) -> Callable[[Any], Any]:
    """Measure candidates for each kernel of a module, and take the fastest.

    Args:
        target: `tvm.target.Target`.
        folder: Of the build; the database becomes its subfolder `tuning`.
        trials: How many candidates are measured, over all kernels.
        database: Folder of an earlier tuning. What was measured there of these kernels, for this target, is copied,
            and counts as measured.
        counts: Receives how many candidates were "reused", "measured" now, and "failed" where they were measured.

    Returns:
        From a module to one with those schedules. It raises `ConversionError` where all measurements failed.
    """
    import tvm
    from tvm import relax
    from tvm.s_tir import meta_schedule

    failures: list[str] = []

    def tune(module: Any, _: Any) -> Any:
        place = folder / DATABASE
        place.mkdir()
        records = meta_schedule.database.JSONDatabase(work_dir=str(place))
        tasks = meta_schedule.relax_integration.extract_tasks(module, target)
        reused = 0 if database is None else _take(database, tasks, records)
        if tasks and trials > reused:
            failures.extend(_measure(tasks, target, place, records, trials - reused, reused))
        valid = sum(len(_measured(records, task.dispatched[0])) for task in tasks)
        counts.update(trials=trials, reused=reused, measured=valid - reused, failed=len(failures))
        with target, records:
            return relax.transform.MetaScheduleApplyDatabase()(module)

    tuning = tvm.transform.module_pass(tune, opt_level=0, name="ApplyTuned")

    def tuned(module: Any) -> Any:
        result = tuning(module)
        # Not in the pass: TVM makes errors of its own of what a pass raises.
        if failures and not counts["reused"] + counts["measured"]:
            raise ConversionError(
                f"tuning: all {len(failures)} measurements failed: {failures[0]}. Choose another `setting`."
            )
        return result

    return tuned


def trials_done(folder: Path) -> int | None:
    """How many candidates a build that runs is done with; None while it doesn't measure.

    Args:
        folder: Of the build.
    """
    try:
        return (folder / DATABASE / _TALLY).stat().st_size
    except FileNotFoundError:
        return None


def check_tuning(kind: str, database: str | None = None) -> None:
    """Refuse to tune where candidates can't be measured, or where writing one to the database ends the process.

    Args:
        kind: Of the target.
        database: Folder of an earlier tuning.

    Raises:
        ConversionError: if MetaSchedule crashes.
        DeviceError: if TVM has nothing to measure on.
        ConfigError: if the folder holds no tuning.
    """
    import tvm

    version = importlib.metadata.version(_LIBRARY)
    if version in _CRASHING:
        raise ConversionError(
            f"MetaSchedule crashes with {_LIBRARY} {version}: it can't write kernels to its database. Install "
            f"{_LIBRARY} {_WORKING}, or choose another `setting`"
        )
    if needs_bridge(kind):
        raise DeviceError(
            "setting 'tuned' measures candidates with TVM's own OpenCL runtime, and this TVM has none (its kernels "
            "run through pyopencl). Choose another `setting` for opencl: O3"
        )
    if kind != "llvm" and not tvm.device(kind, 0).exist:
        raise DeviceError(
            f"setting 'tuned' measures candidates on a {kind} device, and there is none here that TVM can reach. "
            "Choose another `setting`: O3"
        )
    if database is not None and not (Path(database) / _RECORDS).is_file():
        raise ConfigError(
            f"database {database} holds no tuning ({_RECORDS}); give the folder `{DATABASE}` of a build"
        )


def _take(database: str, tasks: list[Any], records: Any) -> int:
    """Copy what was measured of these kernels for their target: schedules are applied by the kernel alone.

    Args:
        database: Folder of an earlier tuning.
        tasks: The kernels.
        records: An empty database.

    Returns:
        How many records that were.
    """
    from tvm.s_tir.meta_schedule.database import JSONDatabase, TuningRecord
    from tvm_ffi import structural_equal

    earlier = JSONDatabase(work_dir=database, allow_missing=False)
    for task in tasks:
        kernel = task.dispatched[0]
        for item in _measured(earlier, kernel):
            if structural_equal(item.target, task.target):
                workload = records.commit_workload(kernel)
                records.commit_tuning_record(
                    TuningRecord(item.trace, workload, item.run_secs, item.target, item.args_info)
                )
    return len(records)


def _measured(records: Any, kernel: Any) -> list[Any]:
    """The records of a kernel, without those whose measurement failed."""
    if not records.has_workload(kernel):
        return []
    return list(records.get_top_k(records.commit_workload(kernel), len(records)))


def _measure(kernels: list[Any], target: Any, place: Path, records: Any, trials: int, reused: int) -> list[str]:
    """Measure random candidates.

    Args:
        kernels: What `extract_tasks` found.
        target: `tvm.target.Target`.
        place: Folder of the database.
        records: The database.
        trials: How many candidates.
        reused: How many there are; decides the draw, so that others are drawn than those.

    Returns:
        What was said where a measurement failed.
    """
    from tvm.s_tir import meta_schedule

    from conrepair.formats.tvm.measuring import Tally, builder, runner

    tally = Tally(place / _TALLY, reused)
    with tempfile.TemporaryDirectory() as logs, target:
        tasks, weights = meta_schedule.relax_integration.extracted_tasks_to_tune_contexts(
            kernels, logs, strategy="replay-trace", seed=reused
        )
        sys.stderr.write(f"tuning {len(tasks)} kernels, {trials} trials\n")
        logging.getLogger("tvm.s_tir.meta_schedule").setLevel(logging.WARNING)
        meta_schedule.tune.tune_tasks(
            tasks=tasks,
            task_weights=weights,
            work_dir=str(place),
            max_trials_global=trials,
            num_trials_per_iter=min(_CANDIDATES_AT_ONCE, max(1, trials // max(1, len(tasks)))),
            builder=builder(tally, Path(logs)),
            runner=runner(tally),
            database=records,
            cost_model="random",
        )
    (place / _TALLY).unlink()
    return tally.failures

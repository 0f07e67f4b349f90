"""What the verb `build` does: compile one model, and keep what was made."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conrepair.backends.tvm import settings
from conrepair.backends.tvm.target import parse_target
from conrepair.config.load import explain
from conrepair.config.model import TvmConfig
from conrepair.frameworks.detect import detect_framework
from conrepair.pipeline.compiling import (
    backend_options,
    check_options,
    compile_payload,
    compile_progress,
    plan_preparation,
)
from conrepair.pipeline.evaluation import problem_of_failure
from conrepair.pipeline.from_config import backend_choice
from conrepair.pipeline.job_table import JOBS
from conrepair.pipeline.jobs import conversion_payload
from conrepair.pipeline.options import given, input_specs, slug
from conrepair.pipeline.scheduler import Scheduler, Task
from conrepair.pipeline.settings import BackendChoice
from conrepair.pipeline.sources import framework_needs, model_of, source_task
from conrepair.pipeline.subject import OnDisk, Subject
from conrepair.runtime.errors import ConfigError, ExitCode, UsageError
from conrepair.runtime.files import whole_output
from conrepair.runtime.progress import ProgressDisplay, say
from conrepair.runtime.scratch import SCRATCH, scratch_folder
from conrepair.runtime.store import RECORD, Entry, Store
from conrepair.runtime.workers import Workers

__all__ = ["build", "tvm_config"]

_BUILD = "build"


def build(options: argparse.Namespace) -> int:
    """Compile a file for a target, without running it; or list the passes.

    Returns:
        0. What fails is an error.
    """
    config = tvm_config(options)
    check_options(config)
    if options.explain:
        say(settings.explain(parse_target(config.target), config.setting, config.required_pass, config.disabled_pass))
        return int(ExitCode.EQUIVALENT)
    path, output = Path(options.model).resolve(), Path(options.output or "").absolute()
    detect_framework(path)
    _check_output(path, output, options)
    model = Subject(name=slug(path), origin=OnDisk(path), declared=input_specs(options.input))
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(scratch_folder(Path(tempfile.gettempdir()), SCRATCH))
        store = stack.enter_context(Store(scratch / "store"))
        display = stack.enter_context(ProgressDisplay(quiet=options.quiet))
        scheduler = Scheduler(store, stack.enter_context(Workers(1, jobs=JOBS)))
        entry, via = _built(model, backend_choice(config, Path.cwd()), scheduler, display, options)
        with whole_output(output) as temporary:
            shutil.copytree(entry.folder, temporary, ignore=shutil.ignore_patterns(RECORD))
    record = entry.result["build"]
    seconds = sum(record["seconds"].values())
    say(f"{output}: {record['kernels']} kernels for {record['target']} in {seconds:.1f} s")
    if tuning := record["tuning"]:
        say("tuned: {measured} candidates measured, {reused} reused, {failed} failed".format_map(tuning))
    say(f"imported by {record['importer']}{f' after {via}' if via else ''}; {record['when_built']}")
    return int(ExitCode.EQUIVALENT)


def tvm_config(options: argparse.Namespace, device: str = "local") -> TvmConfig:
    """The backend that the command line describes.

    Args:
        options: Of the command line.
        device: Where it runs.

    Raises:
        ConfigError: if the configuration's types refuse it.
    """
    value = {
        "name": "tvm",
        "target": options.target,
        "setting": options.opt,
        "importer": options.importer,
        "required_pass": options.required_pass,
        "disabled_pass": options.disabled_pass,
        "unfused": options.unfused,
        "unscheduled": options.unscheduled,
        "trials": options.trials,
        "database": options.database,
        "threads": options.threads,
        "device": device,
        "debug_enabled": options.debug,
    }
    try:
        return TvmConfig.model_validate(given(value))
    except ValidationError as error:
        raise ConfigError("\n".join(line.strip() for line in explain(error, value))) from error


def _built(
    model: Subject,
    config: BackendChoice,
    scheduler: Scheduler,
    display: ProgressDisplay,
    options: argparse.Namespace,
) -> tuple[Entry, str]:
    """Describe, convert where that's needed, compile; each in a worker."""
    entry = _done(source_task(model, options.timeout), scheduler, display)
    source = model_of(entry)
    preparation = plan_preparation(model.name, source.model, config)
    inputs = source.description.inputs
    for conversion in preparation.conversions if preparation is not None else ():
        payload = conversion_payload(source.model, conversion.step, conversion.options, inputs)
        task = Task(
            conversion.name, "convert", _always(payload), needs=conversion.step.needs, timeout=options.timeout
        )
        source = model_of(_done(task, scheduler, display))
    payload = compile_payload(source.model, config, backend_options(config), options.batch_size, runs=False)
    needs = framework_needs(source.model.framework) | {config.name}
    task = Task(
        *(_BUILD, "compile", _always(payload)),
        needs=needs,
        timeout=options.timeout,
        progress=compile_progress(config),
    )
    return _done(task, scheduler, display), preparation.route if preparation is not None else ""


def _always(payload: dict[str, Any]) -> Any:
    def give(_: Mapping[str, Entry]) -> dict[str, Any]:
        return payload

    return give


def _done(task: Task, scheduler: Scheduler, display: ProgressDisplay) -> Entry:
    """Run a task; its failure is the command's."""
    with display.stage(task.kind, 1) as stage:
        scheduler.run([task], side_by_side=1, advance=stage.advance, show=stage.show)
    result = scheduler.results[task.name]
    if result.entry is None:
        if result.failure is None:
            raise ValueError("a task without dependencies is never blocked")
        raise problem_of_failure(result.failure).as_error(task.kind)
    return result.entry


def _check_output(path: Path, output: Path, options: argparse.Namespace) -> None:
    """Refuse to write nowhere, over an input, or over something else than a build.

    Raises:
        UsageError: if so.
    """
    if not options.output:
        raise UsageError("name the folder to write (-o), or list the passes (--explain)")
    if path.is_relative_to(output.resolve()) or output.resolve().is_relative_to(path):
        raise UsageError(f"{output} is, holds, or lies in the model that is compiled. Give another output.")
    if not output.exists():
        return
    if not options.force:
        raise UsageError(f"{output} exists. Give another output, or --force to replace it.")
    if not (output / "build.json").is_file():
        raise UsageError(f"{output} is no build, so it isn't replaced. Give another output.")

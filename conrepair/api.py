"""The verbs, from Python: `conrepair.compare(source, target)` and the like.

Models are paths or objects (modules, exported programs, Keras and ONNX models, TensorFlow functions, TFLite bytes);
data are paths, arrays, mappings of arrays by input, or anything that gives batches. Libraries run in a worker
process that is confined (docs/security.md), unless `in_process=True` is given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conrepair.application.engine.opened import Opened
from conrepair.application.verbs.option import takes
from conrepair.application.verbs.options import (
    Build,
    Compare,
    Convert,
    Execute,
    Inputs,
    Inspect,
    Localize,
    Repair,
)
from conrepair.ground.intake.arguments import flag
from conrepair.ground.intake.arguments import path as a_path
from conrepair.ground.runtime.errors import UsageError

if TYPE_CHECKING:  # what a verb needs is imported when it's called: a program that names this module starts at once
    import numpy.typing as npt

    from conrepair.application.report.built import Built
    from conrepair.application.report.result import AuditResult
    from conrepair.application.report.results import Compared, Converted, Executed, Localized, Repaired
    from conrepair.formats.models.model import Description

__all__ = [
    "audit",
    "build",
    "compare",
    "convert",
    "execute",
    "inputs",
    "inspect",
    "localize",
    "repair",
]


@takes(Compare)
def compare(options: Compare) -> Compared:
    """Tell whether a converted model still gives the outputs of the original.

    Returns:
        With `verdict`, `reason`, `faults`, `save(folder)`.

    Raises:
        ConrepairError: if a model or the data is unusable, with what to do.
    """
    from conrepair.application.pipeline.pair import compare_pair, pair_of

    with Opened(options) as opened:
        done = compare_pair(pair_of(options, opened.given, shown=True), opened.session)
        if done.verdict is None and done.problem is not None:  # else `verdict != "faulty"` passes for want of one
            raise done.problem.as_error()
        return opened.kept(dataclasses.replace(done, run=opened.told_of(done.run)))


@takes(Localize)
def localize(options: Localize) -> Localized:
    """Name the layers of a converted model that compute something else.

    Returns:
        With `verdict`, `reason`, `faults`, `save(folder)`.

    Raises:
        ConrepairError: if a model or the data is unusable, with what to do.
    """
    return localized(options)


def localized(options: Localize) -> Localized:
    """The same, of options that were read."""
    from conrepair.application.pipeline.pair import localize_pair, pair_of

    with Opened(options) as opened:
        pair = pair_of(options, opened.given, shown=True)  # a result is an object that may be saved
        return localize_pair(pair, opened.session)


@takes(Repair)
def repair(options: Repair) -> Repaired:
    """Fix a converted model with the smallest change, in its own format.

    Returns:
        With `mended`, `model` (the repaired file), `verdict`, `faults` (as it came), `save(folder)`.

    Raises:
        ConrepairError: if a model can't be loaded or looked into; with an output also where it can't be edited.
    """
    from conrepair.application.pipeline.pair import pair_of, repair_pair

    with Opened(options) as opened:
        done = repair_pair(pair_of(options, opened.given), opened.session)
        return opened.kept(done) if options.output is None else done.save(options.output)


@takes(Convert)
def convert(options: Convert) -> Converted:
    """Convert a model to another format, and compare the result with it.

    Returns:
        With `model` (the file), `route`, `verdict`, `reason`, `save(path)`.

    Raises:
        ConrepairError: if there's no route, or nothing came of it.
    """
    from conrepair.application.pipeline.single import convert_model, request_of

    with Opened(options) as opened:
        done = opened.kept(convert_model(request_of(options, opened.given), opened.session))
    if options.output is not None:
        done.save(options.output)
    return done


@takes(Build)
def build(options: Build) -> Built:
    """Compile a model with TVM, without running it.

    Returns:
        With `folder` (a converted model for `compare`, `localize` and `repair`), `record`, `seconds`, `save(folder)`.

    Raises:
        ConrepairError: if an option is wrong, or it can't be compiled.
    """
    from conrepair.application.pipeline.building import build_model, build_of
    from conrepair.application.pipeline.from_config import named_choice

    compiler = named_choice("tvm", options.compiler, Path.cwd())
    with Opened(options) as opened:
        subject = build_of(options, opened.given)
        made = build_model(subject, compiler, opened.session, batch_size=options.batch_size, timeout=options.timeout)
        done = opened.kept(made)
    if options.output is not None:
        done.save(options.output)
    return done


@takes(Execute)
def execute(options: Execute) -> Executed:
    """Run a model, and keep its outputs.

    Returns:
        With `outputs` by name, `times`, `save(folder)`.

    Raises:
        ConrepairError: if it can't be run.
    """
    from conrepair.application.pipeline.single import backend_of, execute_model, request_of

    backend = options.backend
    if options.tvm is not None and backend != "tvm":
        raise UsageError(f"tvm is given, and the backend is {backend}. Give backend='tvm', or leave tvm out.")
    chosen = backend_of(options, options.tvm or {})
    with Opened(options) as opened:
        return opened.kept(execute_model(request_of(options, opened.given, [chosen]), opened.session))


@takes(Inputs)
def inputs(options: Inputs) -> dict[str, npt.NDArray[Any]]:
    """Draw what a model is fed, or prepare its data, to run it elsewhere.

    Returns:
        Arrays by the model's inputs, samples first, in the types that it takes.

    Raises:
        ConrepairError: if the model can't be loaded, or the data doesn't fit it.
    """
    import numpy as np

    from conrepair.application.pipeline.single import inputs_file, model_inputs, request_of
    from conrepair.ground.intake.data import write_arrays

    output = None if options.output is None else inputs_file(Path(options.output).absolute())
    if output is not None:
        output.check(force=False)
    with Opened(options) as opened:
        arrays, _ = model_inputs(request_of(options, opened.given), opened.session)
        arrays = {name: np.array(array) for name, array in arrays.items()}
    if output is not None:
        with output.write() as temporary:
            write_arrays(temporary, arrays)
    return arrays


@takes(Inspect)
def inspect(options: Inspect) -> Description:
    """Say what a model consists of: inputs, outputs, operators, weights.

    Raises:
        ConrepairError: if it can't be loaded.
    """
    from conrepair.application.pipeline.declared_inputs import input_specs
    from conrepair.application.pipeline.described import read_file
    from conrepair.ground.intake.models import model_file

    declared = input_specs(options.inputs)
    with Opened(options) as opened:
        path, own = model_file(options.model, opened.given, inputs=declared)
        trust = options.trust or own
        return read_file(path, opened.session, declared, timeout=options.timeout, trust=trust).checked()


def audit(config: str | Path | Mapping[str, Any], *, quiet: bool = True) -> AuditResult:
    """Run the audit that a configuration describes, and write its folder; networks that it wants are not made.

    Args:
        config: A JSON file, or what it says (paths start at the current folder then).
        quiet: Whether no progress is shown.

    Raises:
        ConrepairError: if the configuration is wrong.
    """
    from conrepair.application.config.load import parse_config
    from conrepair.application.config.read import load_for_run
    from conrepair.application.pipeline.audit import run_and_write

    quiet = flag("quiet", quiet)
    if isinstance(config, Mapping):
        return run_and_write(parse_config(dict(config), "the configuration"), Path.cwd(), quiet=quiet)
    path = a_path("config", config)
    return run_and_write(load_for_run(path, quiet=quiet), path.absolute().parent, quiet=quiet)

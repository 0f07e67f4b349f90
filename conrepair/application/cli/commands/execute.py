"""What the verb `execute` does: run one model on one backend, and keep its outputs."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.application.cli.next_step import tell_next
from conrepair.application.cli.several import tell
from conrepair.application.engine.session import Session
from conrepair.application.pipeline.settings import BackendChoice
from conrepair.application.pipeline.single import backend_of, execute_everywhere, execute_model, request_of
from conrepair.application.report.result import RUNTIMES
from conrepair.application.report.results import Executed, check_run_folder
from conrepair.application.verbs.options import EVERYWHERE, Compiled, Execute
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.tvm.capture import KERNELS
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.path_text import model_path
from conrepair.ground.runtime.shown.progress import say
from conrepair.ground.runtime.words import complain

_TEXTS = 5  # that are listed


def execute(options: argparse.Namespace) -> int:
    """Run a file on a backend, and keep its outputs.

    What a compiler made, or a runtime's optimizations, is compared with the model in its own library.

    Returns:
        The exit code, as that comparison has it.
    """
    detect_framework(model_path(options.model))
    if options.backend == EVERYWHERE:
        return _everywhere(options)
    output = None if options.output is None else Path(options.output).absolute()
    if output is not None:
        check_run_folder(output, force=options.force, data=options.data)
    if options.debug_enabled and options.backend != "tvm":
        raise UsageError("--debug keeps the results of kernels, which only --backend tvm has.")
    verb = Execute.of(vars(options))
    request = request_of(verb, backends=[_backend(options, verb)])
    with Session(quiet=options.quiet, keeps=not options.trust, fresh=options.fresh) as session:
        done = execute_model(request, session)
        if output is not None:
            done.save(output, force=options.force)
        else:
            _show_outputs(done)
    row = done.row
    for note in done.run.notes:
        say(f"note: {note}")
    say(f"{done}" if output is None else f"written: {output}: {done}")
    if output is not None and (output / KERNELS).is_file():
        say(_kernels(output / KERNELS))
    if row.ran.times is not None:
        say(f"median time: {1000 * row.ran.times.median:.2f} ms per sample")
    if row.verdict is not None:
        say(f"beside {_beside(done)}: {row.verdict.value}: {row.reason}")
    if row.problem is not None:  # it ran, and couldn't be judged
        complain(f"conrepair: {row.problem.as_error(row.backend)}")
    tell_next(_next(done, options))
    return row.exit_code


def _beside(done: Executed) -> str:
    """The library that it was compared with, by its name."""
    own = done.run.rows[0].ran_by
    return f"{own} without optimizations" if own == RUNTIMES["onnx"] else own


def _everywhere(options: argparse.Namespace) -> int:
    """Run a file on every backend, and show which of them compute what it says."""
    from conrepair.application.pipeline.from_config import every_choice, not_installed

    if options.options:
        raise UsageError(f"--option is for one backend: leave it out with --backend {EVERYWHERE}.")
    choices, folder = every_choice(), None if options.output is None else Path(options.output).absolute()
    request = request_of(Execute.of(vars(options)), backends=choices)
    notes = (*request.notes, *not_installed({choice.name for choice in choices}))
    with Session(quiet=options.quiet, keeps=not options.trust, fresh=options.fresh) as session:
        run = execute_everywhere(dataclasses.replace(request, notes=notes), session, folder=folder)
    tell(run, "text", folder)
    return run.exit_code


def _next(done: Executed, options: argparse.Namespace) -> str:
    """What helps further: kernels' results where they compute otherwise, outputs where they weren't kept."""
    differs = done.verdict is not None and not done.verdict.is_right
    if differs and options.backend == "tvm" and not options.debug_enabled:
        return "the same command with `--debug -o kernels` keeps what each kernel computes"
    return "" if options.output is not None else "the same command with `-o outputs` keeps the outputs as .npy files"


def _show_outputs(done: Executed) -> None:
    """What a person wants to see of outputs that aren't kept; they're there as long as the session is."""
    for name, values in done.outputs.items():
        rows, sizes = values, ", ".join(map(str, values.shape))
        if values.dtype.kind == "O":
            counts = [len(array) for array in values]
            rows = np.concatenate(values.tolist())
            sizes = ", ".join(map(str, (len(values), f"{min(counts)} to {max(counts)}", *rows.shape[1:])))
        kind = "text" if rows.dtype.kind == "U" else rows.dtype
        say(f"{name}: {kind}[{sizes}]{_spread(rows)}")


def _spread(values: npt.NDArray[Any]) -> str:
    """Which values there are."""
    if not values.size:
        return ""
    if values.dtype.kind == "U":
        known, counts = np.unique(values, return_counts=True)
        listed = ", ".join(f"{known[place]!s} {counts[place]} times" for place in np.argsort(-counts)[:_TEXTS])
        return f": {listed}{', ...' if len(known) > _TEXTS else ''}"
    return f" in [{values.min():.4g}, {values.max():.4g}], mean {values.mean():.4g}"


def _backend(options: argparse.Namespace, verb: Execute) -> BackendChoice:
    """Where it runs; options of a backend are refused where they aren't right, before anything is done."""
    own = Compiled.of(vars(options)).compiler | {"device": options.device} if verb.backend == "tvm" else {}
    return backend_of(verb, own)


def _kernels(path: Path) -> str:
    kernels = json.loads(path.read_text(encoding="utf-8"))["kernels"]
    mapped = sum(bool(kernel["members"]) for kernel in kernels)
    return f"{path}: the results of {len(kernels)} kernels, {mapped} of which compute operators of the model"

"""What the verb `build` does: compile one model, and keep what was made."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.application.cli.next_step import command, tell_next
from conrepair.application.engine.session import Session
from conrepair.application.pipeline.building import build_model, build_of
from conrepair.application.pipeline.from_config import named_choice
from conrepair.application.report.built import check_build_folder
from conrepair.application.verbs.options import Build
from conrepair.formats.tvm import settings
from conrepair.formats.tvm.build import unobservable
from conrepair.formats.tvm.target import parse_target
from conrepair.ground.runtime.errors import ExitCode, UsageError
from conrepair.ground.runtime.shown.progress import say


def build(options: argparse.Namespace) -> int:
    """Compile a file for a target, without running it; or list the passes.

    Returns:
        0. What fails is an error.
    """
    verb = Build.of(vars(options))
    compiler = named_choice("tvm", verb.compiler, Path.cwd())
    if options.explain:
        say(_passes(compiler.options))
        return int(ExitCode.EQUIVALENT)
    model, output = build_of(verb), Path(options.output or "").absolute()
    if not options.output:
        raise UsageError("name the folder to write (-o), or list the passes (--explain)")
    check_build_folder(model.path, output, force=options.force)
    with Session(quiet=options.quiet) as session:
        done = build_model(model, compiler, session, batch_size=verb.batch_size, timeout=verb.timeout)
        done.save(output, force=options.force)
    say(f"written: {output}: {done}")
    compared = command("localize", options.model, output, inputs=options.inputs)
    if not unobservable(done.record):
        tell_next(f"{compared} compares each kernel with the layers of the model")
    return done.exit_code


def _passes(compiler: Mapping[str, Any]) -> str:
    required, disabled = tuple(compiler["required_pass"]), tuple(compiler["disabled_pass"])
    return settings.explain(parse_target(compiler["target"]), compiler["setting"], required, disabled)

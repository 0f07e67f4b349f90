"""What the verb `build` does: compile one model, and keep what was made."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.backends.tvm import settings
from conrepair.backends.tvm.target import parse_target
from conrepair.frameworks.detect import detect_framework
from conrepair.pipeline.building import build_model
from conrepair.pipeline.declared_inputs import input_specs
from conrepair.pipeline.from_config import tvm_choice
from conrepair.pipeline.next_step import command, tell_next
from conrepair.pipeline.options import given, slug
from conrepair.pipeline.session import Session
from conrepair.pipeline.subject import OnDisk, Subject
from conrepair.report.built import check_build_folder
from conrepair.runtime.errors import ExitCode, UsageError
from conrepair.runtime.path_text import real_path
from conrepair.runtime.progress import say

__all__ = ["build", "tvm_options"]


def build(options: argparse.Namespace) -> int:
    """Compile a file for a target, without running it; or list the passes.

    Returns:
        0. What fails is an error.
    """
    compiler = tvm_choice(tvm_options(options), Path.cwd())
    if options.explain:
        say(_passes(compiler.options))
        return int(ExitCode.EQUIVALENT)
    path, output = real_path(options.model), Path(options.output or "").absolute()
    detect_framework(path)
    if not options.output:
        raise UsageError("name the folder to write (-o), or list the passes (--explain)")
    check_build_folder(path, output, force=options.force)
    model = Subject(name=slug(path), origin=OnDisk(path, options.trust), declared=input_specs(options.input))
    with Session(quiet=options.quiet) as session:
        done = build_model(model, compiler, session, batch_size=options.batch_size, timeout=options.timeout)
        done.save(output, force=options.force)
    say(f"{output}: {done}")
    compared = command("localize", options.model, output, inputs=options.input)
    tell_next(f"{compared} compares each kernel with the model's layers")
    return done.exit_code


def tvm_options(options: argparse.Namespace, device: str = "local") -> dict[str, Any]:
    """The compiler's options as a configuration has them.

    Args:
        options: Of the command line.
        device: Where it runs.
    """
    return given(
        {
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
    )


def _passes(compiler: Mapping[str, Any]) -> str:
    required, disabled = tuple(compiler["required_pass"]), tuple(compiler["disabled_pass"])
    return settings.explain(parse_target(compiler["target"]), compiler["setting"], required, disabled)

"""What the verb `trace` does: one network, or each of a folder."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from conrepair.cli.next_step import tell_next
from conrepair.engine.session import Session
from conrepair.pipeline.options import slug
from conrepair.pipeline.systems.tracing import trace_file
from conrepair.report.tracing.folder import TracedModel, trace_output
from conrepair.report.tracing.summary import summary_lines, summary_of
from conrepair.runtime.errors import ConrepairError, ExitCode, UsageError
from conrepair.runtime.file_names import FileNames
from conrepair.runtime.path_text import model_path
from conrepair.runtime.progress import say
from conrepair.runtime.words import complain
from conrepair.verbs.trace import Trace

if TYPE_CHECKING:
    from conrepair.config.model import AuditConfig

__all__ = ["trace", "trace_configured"]


def trace(options: argparse.Namespace) -> int:
    """Trace a file, or all of a folder.

    Returns:
        The exit code; of several the worst.
    """
    path = model_path(options.model)
    if not path.is_dir():
        return _one(options, path, None if options.output is None else Path(options.output).absolute())[0]
    output = None if options.output is None else Path(options.output).absolute()
    files = sorted(file for file in path.rglob("*.onnx") if output is None or not file.is_relative_to(output))
    if not files:
        raise UsageError(f"{path} holds no ONNX file.")
    worst, found, names = 0, [], FileNames()
    for place, file in enumerate(files):
        name = names.of(place, file.parent.name if file.stem == "model" else file.stem)
        try:
            code, done = _one(options, file, None if output is None else output / name)
            found.append((name, done.found))
        except ConrepairError as error:
            complain(f"conrepair: {file}: {error}")
            code = int(error.exit_code)
        worst = max(worst, code)
    if options.format == "json":
        say(json.dumps(summary_of(found), indent=2, ensure_ascii=False))
    else:
        say("\n".join(summary_lines(found)))
    return worst


def trace_configured(config: AuditConfig, base: Path, *, quiet: bool) -> int:
    """Trace the networks of a configuration.

    Args:
        config: With a section for them.
        base: Folder that its relative paths start from.
        quiet: No progress.

    Returns:
        The worst exit code.
    """
    wanted = config.trace
    if wanted is None:
        raise ValueError("the configuration has no section `trace`")
    names, codes = FileNames(), [0]
    for place, model in enumerate(wanted.models):
        folder = base / config.output / wanted.folder / names.of(place, slug(Path(model)))
        options = {
            **wanted.model_dump(exclude={"folder", "models"}),
            "model": str(base / model),
            "output": str(folder),
            "format": "text",
            "quiet": quiet,
            "fresh": not config.reuse,
            "timeout": config.limits.seconds,
        }
        try:
            codes.append(trace(argparse.Namespace(**options)))
        except ConrepairError as error:
            complain(f"conrepair: {model}: {error}")
            codes.append(int(error.exit_code))
    return max(codes)


def _next(output: Path | None) -> str:
    if output is None:
        return "the same command with `-o trace` keeps the inputs, and programs that show it without conrepair"
    where = f"in {output}, `python with.py` shows it without conrepair"
    return f"{where}, and `python without.py` doesn't" if (output / "without.py").is_file() else where


def _one(options: argparse.Namespace, path: Path, output: Path | None) -> tuple[int, TracedModel]:
    if output is not None:
        trace_output(output).check()
    asked = Trace.of(vars(options) | {"model": path})
    alone = not Path(options.model).is_dir()
    with Session(quiet=options.quiet, keeps=True, fresh=options.fresh) as session:
        done = trace_file(asked, session, session.room / "given")
        if output is not None:
            done.save(output)
    if options.format == "text":
        say(f"{path.name if alone else path}: {done}")
    elif alone:
        say(json.dumps(done.to_dict(), indent=2, ensure_ascii=False))
    if options.format == "text" and alone and done.exit_code != int(ExitCode.EQUIVALENT):
        tell_next(_next(output))
    return done.exit_code, done

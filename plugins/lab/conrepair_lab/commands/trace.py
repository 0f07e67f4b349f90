"""What the verb `trace` does: one network, or each of a folder."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from conrepair.application.cli.next_step import tell_next
from conrepair.application.cli.shared import engine_of
from conrepair.application.engine.place import at_once, elsewhere
from conrepair.application.engine.session import Session
from conrepair.application.pipeline.subject import slug
from conrepair.ground.runtime.errors import ConrepairError, ExitCode, UsageError
from conrepair.ground.runtime.path_text import FileNames, model_path
from conrepair.ground.runtime.shown.progress import ProgressDisplay, say
from conrepair.ground.runtime.words import complain
from conrepair_lab.options.trace import Trace
from conrepair_lab.report.tracing.folder import TracedModel, trace_output
from conrepair_lab.report.tracing.words import summary_lines, summary_of
from conrepair_lab.runs.tracing import trace_file
from conrepair_lab.tracing.result import Traced

if TYPE_CHECKING:
    from conrepair.application.config.model import AuditConfig
    from conrepair_lab.sections import TraceConfig


def trace(options: argparse.Namespace) -> int:
    """Trace a file, or all of a folder: on a cluster as many at once as run there.

    Returns:
        The exit code; of several the worst.
    """
    with engine_of(options).opened(quiet=options.quiet):
        return _traced(options)


def _traced(options: argparse.Namespace) -> int:
    path = model_path(options.model)
    if not path.is_dir():
        return _alone(options, path)
    output = None if options.output is None else Path(options.output).absolute()
    files = sorted(file for file in path.rglob("*.onnx") if output is None or not file.is_relative_to(output))
    if not files:
        raise UsageError(f"{path} holds no ONNX file.")
    worst, found, names = 0, [], FileNames()
    named = [
        (file, names.of(place, file.parent.name if file.stem == "model" else file.stem))
        for place, file in enumerate(files)
    ]

    def one(item: tuple[Path, str]) -> tuple[Traced, str, int]:
        done = _one(options, item[0], None if output is None else output / item[1])
        return done.found, str(done), done.exit_code  # and not all that it was found with

    shown = ProgressDisplay(quiet=options.quiet or not elsewhere())  # here each shows its own
    with shown as display, display.stage("trace", len(named)) as stage:
        for (file, name), outcome in zip(named, at_once(one, named), strict=True):
            try:
                told, words, code = outcome()
            except ConrepairError as error:
                complain(f"conrepair: {file}: {error}")
                code = int(error.exit_code)
            else:
                if options.format == "text":
                    say(f"{file}: {words}")
                found.append((name, told))
            worst = max(worst, code)
            stage.advance(name)
    if options.format == "json":
        say(json.dumps(summary_of(found), indent=2, ensure_ascii=False))
    else:
        say("\n".join(summary_lines(found)))
    return worst


def trace_configured(wanted: TraceConfig, config: AuditConfig, base: Path, *, quiet: bool) -> int:
    """Trace the networks of a configuration.

    Args:
        wanted: The section for them.
        config: The whole.
        base: Folder that its relative paths start from.
        quiet: No progress.

    Returns:
        The worst exit code.
    """
    names, codes = FileNames(), [0]
    for place, model in enumerate(wanted.models):
        folder = base / config.output / wanted.folder / names.of(place, slug(Path(model)))
        try:
            one = wanted.asked(Trace, base, model=str(base / model), timeout=config.limits.seconds)
            how = {"output": str(folder), "format": "text", "quiet": quiet, "fresh": not config.reuse}
            codes.append(_traced(argparse.Namespace(**vars(one), **how)))
        except ConrepairError as error:
            complain(f"conrepair: {model}: {error}")
            codes.append(int(error.exit_code))
    return max(codes)


def _next(output: Path | None) -> str:
    if output is None:
        return "the same command with `-o trace` keeps the inputs, and programs that show it without conrepair"
    where = f"in {output}, `python with.py` shows it without conrepair"
    return f"{where}, and `python without.py` doesn't" if (output / "without.py").is_file() else where


def _alone(options: argparse.Namespace, path: Path) -> int:
    output = None if options.output is None else Path(options.output).absolute()
    done = _one(options, path, output)
    if options.format == "text":
        say(f"{path.name}: {done}")
        if done.exit_code != int(ExitCode.EQUIVALENT):
            tell_next(_next(output))
    else:
        say(json.dumps(done.to_dict(), indent=2, ensure_ascii=False))
    return done.exit_code


def _one(options: argparse.Namespace, path: Path, output: Path | None) -> TracedModel:
    wanted = Trace.of(vars(options) | {"model": path})
    if output is not None:
        trace_output(output).check(inputs=filter(None, (path, wanted.data)))
    with Session(quiet=options.quiet or elsewhere(), keeps=True, fresh=options.fresh) as session:
        done = trace_file(wanted, session, session.room / "given")
        if output is not None:
            done.save(output)
    return done

"""What the verb `convert` does: one conversion, whose result is kept and compared with its source."""

from __future__ import annotations

import argparse
from pathlib import Path

from conrepair.application.cli.next_step import after_conversion, tell_next
from conrepair.application.engine.session import Session
from conrepair.application.pipeline.single import convert_model, request_of
from conrepair.application.report.next_steps import sentence
from conrepair.application.report.repair.summary import conversion_lines
from conrepair.application.report.result import AuditResult
from conrepair.application.report.results import check_model_output
from conrepair.application.report.saved import result_text
from conrepair.application.report.summary import row_notes
from conrepair.application.verbs.options import Convert
from conrepair.formats.models.detect import detect_framework, detect_suffix
from conrepair.ground.runtime.errors import ExitCode, UsageError
from conrepair.ground.runtime.path_text import model_path, real_path
from conrepair.ground.runtime.shown.progress import say


def convert(options: argparse.Namespace) -> int:
    """Convert a file along a route, and compare the result with its source.

    The output appears when every step has succeeded, also when it answers otherwise: then that's said. Where a step
    fails, what stops it is looked for, and another way that gives what the source gives.

    Returns:
        The exit code, as the comparison has it; that of a difference where none could be made (inputs leave sizes
        open, so that none could be drawn), unless it wasn't wanted.
    """
    verb = Convert.of(vars(options))
    path, output = model_path(options.model), Path(options.output).absolute()
    detect_framework(path)
    _check_output(path, output, verb.to, force=options.force)
    request = request_of(verb)
    with Session(quiet=options.quiet, keeps=not options.trust, fresh=options.fresh) as session:
        done = convert_model(request, session)
        result, row, written = done.run, done.row, done.model
        if output.suffix and written.suffix != output.suffix.lower() and verb.to == "torch":
            # torch tells an exported program (.pt2) and TorchScript (.pt) apart by nothing else.
            output = output.with_suffix(written.suffix)
            _check_output(path, output, verb.to, force=options.force)
        done.save(output, force=options.force)
    if options.format == "json":
        say(result_text(done.placed(output).run, after_conversion(row, options, output)))
    else:
        way = row.conversion if row.instead_of else "+".join(request.subjects[0].goals[0].via or ())
        say(f"written: {output}, converted by {way.replace('+', ' and ')}")
        for line in _about(result):
            say(line)
        tell_next(sentence(after_conversion(row, options, output)))
    undeclared = options.data is None and row.exit_code == ExitCode.USAGE
    return int(ExitCode.DIFFERENT) if undeclared else row.exit_code


def _about(result: AuditResult) -> list[str]:
    """What is to be said of a conversion that succeeded: notes, and what the comparison of each step says."""
    lines, said = [f"note: {note}" for note in result.notes], set()
    for row in result.rows:
        step = row.conversion or "source"
        lines += [f"note: {step}: {note}" for note in row_notes(row)]
        if row.problem is None and row.verdict is not None:
            lines.append(f"{step}: {row.verdict.value}: {row.reason}")
        elif row.problem is not None and row.problem.message not in said:
            said.add(row.problem.message)
            lines.append(f"{step}: {row.verdict.value if row.verdict else 'not compared'}: {row.problem.message}")
        if row.mending is not None:
            lines += [f"  {line}" for line in conversion_lines(row.mending)]
    return lines


def _check_output(path: Path, output: Path, target: str, *, force: bool) -> None:
    """Refuse to write over an input, over a folder of something else, or under another format's suffix.

    Raises:
        UsageError: if so.
    """
    here, there = real_path(path), real_path(output)
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise UsageError(f"{output} is the model to convert, or lies in or around it. Give another output.")
    if target == "tensorflow" and output.suffix == ".pb":
        raise UsageError(f"{output.name}: the conversion makes a SavedModel, which is a folder. Leave out .pb.")
    try:
        suffix_of = detect_suffix(output)
    except KeyError:
        suffix_of = target
    if suffix_of != target:
        raise UsageError(
            f"{output.name} has the suffix of {suffix_of}, but the conversion is to {target}. Give another name."
        )
    check_model_output(output, force=force)

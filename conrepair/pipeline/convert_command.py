"""What the verb `convert` does: an audit of one conversion, whose result is kept."""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.config.load import parse_config
from conrepair.config.model import format_name, unknown_format
from conrepair.converters.routes import Route, find_route, pinned_route
from conrepair.data.named_recipes import RECIPES
from conrepair.frameworks.detect import detect_framework, detect_suffix
from conrepair.frameworks.identity import model_sha256, place_model
from conrepair.frameworks.model import Model
from conrepair.pipeline.audit import run_audit
from conrepair.pipeline.options import dataset_of, given, given_recipe, input_specs, parse_input, read_options, slug
from conrepair.report.repair.mending import mending_lines
from conrepair.report.result import AuditResult
from conrepair.report.summary import row_notes
from conrepair.report.write import report_json
from conrepair.runtime.errors import ConrepairError, ExitCode, UsageError
from conrepair.runtime.progress import ProgressDisplay, say
from conrepair.runtime.scratch import SCRATCH, scratch_folder

__all__ = ["convert"]

_TOLD = {"rows", "notes", "versions", "seconds"}  # of a report of the whole audit


def convert(options: argparse.Namespace) -> int:
    """Convert a file along a route, and compare the result with its source.

    The output appears when every step has succeeded, also when it answers otherwise: then that's said. Where a step
    fails, what stops it is looked for, and another way that gives what the source gives.

    Returns:
        The exit code, as the comparison has it; that of a difference where none could be made (inputs leave sizes
        open, so that none could be drawn), unless it wasn't wanted.
    """
    path, output = Path(options.model).resolve(), Path(options.output).absolute()
    framework, target = detect_framework(path), format_name(options.to)
    problem = unknown_format(target)
    if problem is not None:
        raise UsageError(f"--to: {problem}")
    _check_output(path, output, target, force=options.force)
    via = options.via.split(",") if options.via else None
    if target == framework and not via:
        raise UsageError(f"{path} is {target} already. For a round trip name the converters (--via).")
    model = Model(framework, str(path), model_sha256(path), inputs=input_specs(options.input))
    route = pinned_route(via, framework, target) if via else find_route(framework, target, model=model)
    settings = read_options(options.option, route)
    _check_data(options, route, settings)
    subject = {
        "name": slug(path),
        "path": str(path),
        "inputs": [parse_input(text) for text in options.input] or None,
        "conversions": [{"via": [step.name for step in route.steps], "options": settings}],
    }
    with scratch_folder(Path(tempfile.gettempdir()), SCRATCH) as scratch:
        value = {
            "output": str(scratch),
            "dataset": dataset_of(options) | ({"labels": "none"} if _takes_photos(options) else {}),
            "limits": {"workers": 1, "seconds": options.timeout},
            "stages": {"execute": options.check, "repair": options.repair},
            "repair": {"targets": False, "seconds": options.seconds},
            "models": [given(subject | {"recipe": given_recipe(options.recipe)})],
        }
        with ProgressDisplay(quiet=options.quiet) as display:
            result = run_audit(parse_config(value, "command line"), Path.cwd(), display)
        targets = [row for row in result.rows if row.kind == "target"]
        row = next((row for row in targets if row.instead_of), targets[0] if targets else None)
        if row is None or row.ran.artifact is None:
            raise _failure(result)
        written = Path(row.ran.artifact.path)
        if output.suffix and written.suffix != output.suffix and target == "torch":
            # torch tells an exported program (.pt2) and TorchScript (.pt) apart by nothing else.
            output = output.with_suffix(written.suffix)
            _check_output(path, output, target, force=options.force)
        place_model(written, output, path, force=options.force)
    if options.format == "json":
        report = {key: value for key, value in report_json(result).items() if key in _TOLD}
        say(json.dumps({"output": str(output), "conversion": row.conversion} | report, indent=2))
    else:
        say(f"{output}: {row.conversion if row.instead_of else route.name}")
        for line in _about(result):
            say(line)
    undeclared = options.data is None and row.exit_code == ExitCode.USAGE
    return int(ExitCode.DIFFERENT) if undeclared else row.exit_code


def _takes_photos(options: argparse.Namespace) -> bool:
    return options.data is not None and Path(options.data).suffix not in {".npz", ".npy"}


def _check_data(options: argparse.Namespace, route: Route, settings: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse to calibrate with what wasn't given.

    Raises:
        UsageError: if there's no data, or photos without a recipe.
    """
    for step in route.steps:
        chosen = step.complete(settings[step.name])
        if not step.calibrates(chosen):
            continue
        if options.data is None:
            asked = f" with quantize={chosen['quantize']}" if "quantize" in chosen else ""
            raise UsageError(
                f"{step.name}{asked} calibrates with data, and none is given. Give --data: a folder of photos "
                "(with --recipe), or .npz/.npy."
            )
        if _takes_photos(options) and options.recipe is None:
            raise UsageError(
                f"{step.name} calibrates with photos, and what they are before they enter the model decides the "
                f"ranges. Give --recipe: {', '.join(RECIPES)}."
            )


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
            lines += [f"  {line}" for line in mending_lines(row.mending)]
    return lines


def _failure(result: AuditResult) -> ConrepairError:
    """The first problem on the way, with its exit code."""
    first, problem = next(
        (row, row.problem) for row in result.rows if row.ran.artifact is None and row.problem is not None
    )
    mendings = [row.mending for row in result.rows if row.mending is not None]
    told = [line for mending in mendings for line in mending_lines(mending)]
    words = "\n".join([problem.explanation, *told]).strip()
    return dataclasses.replace(problem, explanation=words).as_error(first.conversion)


def _check_output(path: Path, output: Path, target: str, *, force: bool) -> None:
    """Refuse to write over an input, over a folder of something else, or under another format's suffix.

    Raises:
        UsageError: if so.
    """
    here, there = path.resolve(), output.resolve()
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise UsageError(f"{output} is, holds, or lies in the model that is converted. Give another output.")
    if target == "tensorflow" and output.suffix == ".pb":
        raise UsageError(f"{output.name}: the conversion makes a SavedModel, which is a folder. Leave .pb away.")
    try:
        suffix_of = detect_suffix(output)
    except KeyError:
        suffix_of = target
    if suffix_of != target:
        raise UsageError(f"{output.name} has the suffix of {suffix_of}, the conversion is to {target}. Rename it.")
    if not output.exists():
        return
    if not force:
        raise UsageError(f"{output} exists. Give another output, or --force to replace it.")
    if output.is_dir() and not (output / "saved_model.pb").is_file():
        raise UsageError(f"{output} is a folder and no SavedModel, so it isn't replaced. Give another output.")

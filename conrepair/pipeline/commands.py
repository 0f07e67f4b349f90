"""What the verbs of the command line do."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from conrepair.config.load import load_config, parse_config
from conrepair.config.model import AuditConfig, format_name
from conrepair.converters.routes import find_route, pinned_route
from conrepair.data.tensor_spec import TensorSpec, merge_declared, with_declared_sizes
from conrepair.frameworks.detect import detect_framework, detect_suffix, is_torchscript
from conrepair.frameworks.identity import copy_model, model_sha256
from conrepair.frameworks.model import Description, Model, from_json, to_json
from conrepair.pipeline.audit import run_audit
from conrepair.pipeline.calibration import CalibrationData, read_options
from conrepair.pipeline.jobs import conversion_payload
from conrepair.pipeline.sources import framework_needs
from conrepair.report.result import AuditResult
from conrepair.report.summary import print_summary
from conrepair.report.verdict_table import print_verdicts
from conrepair.report.write import report_json, write_audit, write_so_far
from conrepair.runtime.errors import ConfigError, ConrepairError, ExitCode, UsageError
from conrepair.runtime.progress import ProgressDisplay, output_console, say
from conrepair.runtime.scratch import SCRATCH, scratch_folder
from conrepair.runtime.workers import Failure, Job, Workers

__all__ = ["audit_and_report", "compare", "convert", "inspect", "run_config"]

_TIMEOUT = 600.0


def run_config(path: str, *, fresh: bool, output: str | None, quiet: bool) -> int:
    """Run a configured audit, write its folder, show the summary.

    Args:
        path: Of the configuration.
        fresh: Reuse nothing.
        output: Instead of the configuration's output folder.
        quiet: No progress.

    Returns:
        The exit code.
    """
    file = Path(path)
    config = load_config(file)
    changes: dict[str, Any] = {"reuse": config.reuse and not fresh}
    if output is not None:
        changes["output"] = str(Path(output).absolute())
    return audit_and_report(config.model_copy(update=changes), file.absolute().parent, quiet=quiet, as_json=False)


def compare(options: argparse.Namespace) -> int:
    """Compare two files: an audit of one model and one conversion made elsewhere."""
    source, target = Path(options.source), Path(options.target)
    for path in (source, target):
        detect_framework(path)  # a file that isn't there is said at once
    tolerance: dict[str, Any] = {}
    if options.rtol is not None or options.atol is not None:
        # Given tolerances decide alone: the bound on the whole tensor is for the defaults.
        tolerance = _given({"rtol": options.rtol, "atol": options.atol}) | {"relative_l2": None}
    inputs = [_parse_input(text) for text in options.input] or None
    recipe = {"recipe": options.recipe}
    names = _slug(source), _slug(target)
    if names[0] == names[1]:
        names = f"{names[0]}-source", f"{names[1]}-target"
    value = {
        "name": f"compare-{names[0]}-{names[1]}",
        "output": str(Path(options.output).absolute()),
        "dataset": _dataset(options),
        "batch_size": options.batch_size,
        "tolerance": tolerance,
        "models": [
            {"name": names[0], "path": str(source.absolute())} | _given(recipe | {"inputs": inputs}),
            {"name": names[1], "path": str(target.absolute()), "compare_with": names[0]}
            | _given(recipe | {"inputs": inputs if _hides_inputs(target) else None}),
        ],
    }
    config = parse_config(value, "command line")
    return audit_and_report(config, Path.cwd(), quiet=options.quiet, as_json=options.format == "json")


def convert(options: argparse.Namespace) -> int:
    """Convert a file along a route; the output appears when every step has succeeded."""
    path, output = Path(options.model).resolve(), Path(options.output).absolute()
    framework = detect_framework(path)
    target = format_name(options.to)
    _check_output(path, output, target, force=options.force)
    via = options.via.split(",") if options.via else None
    inputs = tuple(from_json(TensorSpec, _input_spec(text)) for text in options.input)
    model = Model(framework, str(path), model_sha256(path), inputs=inputs)
    if target == framework and not via:
        raise UsageError(f"{path} is {target} already. For a round trip name the converters (--via).")
    route = pinned_route(via, framework, target) if via else find_route(framework, target, model=model)
    settings = read_options(options.option, route)
    with (
        ProgressDisplay(quiet=options.quiet) as display,
        display.stage("convert", len(route.steps)) as stage,
        scratch_folder(Path(tempfile.gettempdir()), SCRATCH) as scratch,
        CalibrationData(options.data, options.recipe, scratch) as calibration,
        Workers(1) as workers,
    ):
        declared = merge_declared(_describe(model, workers, scratch).inputs, inputs)
        taken = declared
        notes: list[str] = []
        for index, (step, chosen) in enumerate(zip(route.steps, settings, strict=True)):
            stage.show(step.name)
            step.prepare(display)
            folder = scratch / str(index)
            folder.mkdir()
            data = calibration.for_step(step.name, chosen, taken) if step.calibrates(chosen) else None
            payload = conversion_payload(model, step, chosen, declared, data)
            job = Job("conrepair.pipeline.jobs:convert", payload, folder, step.needs, options.timeout)
            value = _value(workers.call(job), step.name)
            model = from_json(Model, value["model"] | {"path": str(folder / value["model"]["path"])})
            taken = with_declared_sizes(from_json(Description, value["description"]).inputs, declared)
            stage.advance(step.name)
            notes += [f"{step.name}: {note}" for note in model.provenance.notes] if model.provenance else []
        written = Path(model.path)
        if output.suffix and written.suffix != output.suffix and target == "torch":
            # torch tells an exported program (.pt2) and TorchScript (.pt) apart by nothing else.
            output = output.with_suffix(written.suffix)
            _check_output(path, output, target, force=options.force)
        copy_model(written, output)
    say(f"{output}: {route.name}")
    for note in notes:
        say(f"note: {note}")
    return int(ExitCode.EQUIVALENT)


def inspect(options: argparse.Namespace) -> int:
    """Describe a file."""
    path = Path(options.model).resolve()
    inputs = tuple(from_json(TensorSpec, _input_spec(text)) for text in options.input)
    model = Model(detect_framework(path), str(path), model_sha256(path), inputs=inputs)
    with scratch_folder(Path(tempfile.gettempdir()), SCRATCH) as scratch, Workers(1) as workers:
        description = _describe(model, workers, scratch)
    if options.format == "json":
        value = to_json(description) | {"precision": description.precision, "sha256": model.sha256}
        say(json.dumps(value, indent=2))
        return int(ExitCode.EQUIVALENT)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    opset = f", opset {description.opset}" if description.opset else ""
    rows = [
        ("format", f"{description.format}{opset}"),
        *(("input", str(spec)) for spec in description.inputs),
        *(("output", str(spec)) for spec in description.outputs),
        ("parameters", f"{description.parameters:,} ({description.precision})"),
        (
            "operators",
            ", ".join(f"{name} {count}" for name, count in description.operators.items()),
        ),
        ("producer", description.producer or "not recorded"),
        ("sha256", model.sha256),
    ]
    for name, text in rows:
        table.add_row(name, escape(text))
    output_console().print(table)
    return int(ExitCode.EQUIVALENT)


def _hides_inputs(path: Path) -> bool:
    """Whether a file doesn't say what its inputs are: TorchScript."""
    return path.is_file() and path.suffix != ".pt2" and is_torchscript(path)


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


def audit_and_report(config: AuditConfig, base: Path, *, quiet: bool, as_json: bool) -> int:
    """Run an audit, write its folder, show the result.

    Args:
        config: What to do.
        base: Folder that its relative paths start from.
        quiet: No progress.
        as_json: Show the whole report instead of tables.

    Returns:
        The exit code.
    """
    with contextlib.ExitStack() as use:
        with ProgressDisplay(quiet=quiet) as display:
            result = run_audit(config, base, display, use, write_so_far)
        write_audit(result, base / config.output / "store")
    if as_json:
        say(json.dumps(report_json(result), indent=2))
    else:
        _show(result)
    return result.exit_code


def _show(result: AuditResult) -> None:
    """Show the result; architectures as a table of verdicts, or many would fill many screens."""
    if any(row.model not in result.architectures for row in result.rows):
        print_summary(result, output_console())
    if result.architectures:
        print_verdicts(result, output_console())


def _describe(model: Model, workers: Workers, scratch: Path) -> Description:
    folder = scratch / "describe"
    folder.mkdir()
    job = Job(
        "conrepair.pipeline.jobs:describe",
        {"model": to_json(model)},
        folder,
        framework_needs(model.framework),
        _TIMEOUT,
    )
    value = _value(workers.call(job), f"{model.path} can't be loaded")
    return from_json(Description, value["description"])


def _value(outcome: Any, what: str) -> dict[str, Any]:
    """What a job returned; its failure as an error with the right exit code."""
    if not isinstance(outcome, Failure):
        value: dict[str, Any] = outcome.value
        return value
    words = "".join(f"\n  | {line}" for line in outcome.last_words.splitlines()[-5:])
    text = str(outcome) if outcome.kind == "refused" else f"{what}: {outcome}"
    explanation = f"\n{outcome.explanation}" if outcome.explanation else ""
    error = ConrepairError(f"{text}{explanation}{words}")
    error.exit_code = ExitCode(outcome.exit_code)
    raise error


def _dataset(options: argparse.Namespace) -> dict[str, Any]:
    if options.data is None:
        limits = {"seed": options.seed, "low": options.low, "high": options.high}
        return {"synthetic": {"samples": options.samples} | limits}
    path = Path(options.data).absolute()
    return {"tensors": str(path)} if path.suffix in {".npz", ".npy"} else {"folder": str(path)}


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _slug(path: Path) -> str:
    """A file's name as the name of a model."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", path.name).lstrip("._-") or "model"


def _parse_input(text: str) -> dict[str, Any]:
    """Read [NAME=]batch,3,224,224[:dtype]."""
    name, _, rest = text.rpartition("=")
    sizes, _, dtype = rest.partition(":")
    shape = [int(size) if size.lstrip("-").isdigit() else size for size in sizes.split(",") if size]
    if not shape:
        raise ConfigError(f"--input {text}: give a shape, as in --input batch,3,224,224")
    return {"name": name or None, "shape": shape, "dtype": dtype or "float32"}


def _input_spec(text: str) -> dict[str, Any]:
    value = _parse_input(text)
    return value | {"name": value["name"] or ""}

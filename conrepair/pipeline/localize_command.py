"""`conrepair localize`: where a converted file stops being its source; needs no configuration and no data."""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

from conrepair.config.load import parse_config
from conrepair.evaluate.verdict import Verdict
from conrepair.frameworks.detect import detect_framework
from conrepair.localize.steps import attribute_steps
from conrepair.pipeline.audit import run_audit
from conrepair.pipeline.evaluation import error_of
from conrepair.pipeline.options import dataset_of, given, hides_inputs, parse_input, slug
from conrepair.report.localization.about import about_row
from conrepair.report.localization.document import localization_document
from conrepair.report.localization.summary import print_localization
from conrepair.report.localization.write import check_localization_folder, write_localization
from conrepair.report.result import Problem, Row
from conrepair.runtime.errors import ExitCode
from conrepair.runtime.progress import ProgressDisplay, output_console, say
from conrepair.runtime.scratch import SCRATCH, scratch_folder

__all__ = ["comparison_config", "localize", "row_problem"]


def localize(options: argparse.Namespace) -> int:
    """Localize between two files, with the models between them if they are given.

    Returns:
        The exit code: 0 where nothing is wrong, 1 where something is.

    Raises:
        ConrepairError: if a file can't be loaded or looked into.
    """
    source, target = Path(options.source).resolve(), Path(options.target).resolve()
    between = [Path(text).resolve() for text in options.intermediate]
    for path in (source, *between, target):
        detect_framework(path)  # a file that isn't there is said at once
    folder = Path(options.output).absolute()
    check_localization_folder(folder, (source, *between, target))
    names = _names([source, *between, target])
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(scratch_folder(Path(tempfile.gettempdir()), SCRATCH))
        config = parse_config(
            comparison_config(options, dict(zip(names, (source, *between, target), strict=True)), scratch),
            "command line",
        )
        display = stack.enter_context(ProgressDisplay(quiet=options.quiet))
        result = run_audit(config, Path.cwd(), display, stack)
    rows = {row.model: row for row in result.rows}
    for name in (names[0], names[-1]):
        problem = row_problem(rows[name])
        if problem is not None:
            raise error_of(problem)
    last = rows[names[-1]].localization
    if last is None:
        raise ValueError(f"{target} was not localized, and nothing says why")
    if between:
        steps = [(path.name, rows[name].localization) for path, name in zip(between, names[1:-1], strict=True)]
        last = attribute_steps(last, steps, target.name)
    about = about_row(rows[names[0]], rows[names[-1]], result)
    if about is None:
        raise ValueError("a model that was localized is on disk")
    write_localization(last, folder, about)
    if options.format == "json":
        say(json.dumps(localization_document(last, about).model_dump(mode="json"), indent=2))
    else:
        print_localization(last, output_console(), about=about, folder=folder)
    return int(ExitCode.EQUIVALENT if last.verdict.severity <= Verdict.QUANTIZED.severity else ExitCode.DIFFERENT)


def row_problem(row: Row) -> Problem | None:
    """What kept a model from being looked at."""
    return row.not_localized or (row.problem if row.localization is None else None)


def _names(paths: list[Path]) -> list[str]:
    """One for each file, all different."""
    return [f"{slug(path)}-{place}" for place, path in enumerate(paths)]


def comparison_config(options: argparse.Namespace, files: dict[str, Path], scratch: Path) -> dict[str, Any]:
    """An audit of a source and what was made of it, of which every layer is looked at.

    Args:
        options: Of the command line.
        files: By the models' names, the source's first.
        scratch: For what the audit writes.
    """
    inputs = [parse_input(text) for text in options.input] or None
    (first, source), *others = files.items()
    own = given({"recipe": options.recipe, "inputs": inputs})
    models: list[dict[str, Any]] = [{"name": first, "path": str(source)} | own]
    for name, path in others:
        last = name == others[-1][0]
        recipe = (options.target_recipe if last else None) or options.recipe
        declared = {"recipe": recipe, "inputs": inputs if hides_inputs(path) else None}
        models.append({"name": name, "path": str(path), "compare_with": first} | given(declared))
    settings = {"when": "always", "samples": options.samples, "batch_size": options.batch_size}
    return {
        "output": str(scratch),
        "dataset": dataset_of(options) | ({"limit": options.samples} if options.data is not None else {}),
        "limits": {"workers": 1, "seconds": options.timeout},
        "stages": {"localize": True},
        "localize": settings,
        "tolerance": given({"noise_margin": options.margin}),
        "models": models,
    }

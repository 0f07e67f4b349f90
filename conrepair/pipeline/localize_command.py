"""`conrepair localize`: where a converted file stops being its source; needs no configuration and no data."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conrepair.config.load import parse_config
from conrepair.frameworks.detect import detect_framework
from conrepair.localize.steps import attribute_steps
from conrepair.pipeline.audit import run_audit
from conrepair.pipeline.build_audit import compare_build, is_build
from conrepair.pipeline.evaluation import error_of
from conrepair.pipeline.options import dataset_of, given, given_recipe, localize_section, parse_input, slug
from conrepair.report.localization.about import about_step
from conrepair.report.localization.document import localization_document
from conrepair.report.localization.summary import print_localization
from conrepair.report.localization.write import check_localization_folder, write_localization
from conrepair.report.result import AuditResult
from conrepair.runtime.errors import ExitCode, UsageError
from conrepair.runtime.progress import ProgressDisplay, output_console, say
from conrepair.runtime.scratch import SCRATCH, scratch_folder

__all__ = ["compare_files", "localize"]


def localize(options: argparse.Namespace) -> int:
    """Localize between two files, with the models between them if they are given.

    Returns:
        The exit code: 0 where nothing is wrong, 1 where something is.

    Raises:
        ConrepairError: if a file can't be loaded or looked into.
    """
    source, target = Path(options.source).resolve(), Path(options.target).resolve()
    between = [Path(text).resolve() for text in options.intermediate]
    compiled = is_build(target)
    if compiled and between:
        raise UsageError("a build is compared with the model that it was compiled of: leave --intermediate out.")
    for path in (source, *between, *([] if compiled else [target])):
        detect_framework(path)  # a file that isn't there is said at once
    folder = Path(options.output).absolute()
    check_localization_folder(folder, (source, *between, target))
    with contextlib.ExitStack() as stack:
        if compiled:
            result = compare_build(options, source, target, stack)
        else:
            result = compare_files(options, [source, *between, target], stack)
    _, *middle, row = result.rows
    last = row.localized.result
    if last is None or not row.localized.steps:
        raise ValueError(f"{target} was not localized, and nothing says why")
    if between:
        steps = [(path.name, item.localized.result) for path, item in zip(between, middle, strict=True)]
        last = attribute_steps(last, steps, target.name)
    about = about_step(row.localized.steps[-1], row, result)
    if compiled:  # the audit has a copy of it
        about = dataclasses.replace(about, build=str(target))
    write_localization(last, folder, about)
    if options.format == "json":
        say(json.dumps(localization_document(last, about).model_dump(mode="json"), indent=2))
    else:
        print_localization(last, output_console(), about=about, folder=folder)
    return int(ExitCode.EQUIVALENT if last.is_right else ExitCode.DIFFERENT)


def compare_files(
    options: argparse.Namespace,
    paths: Sequence[Path],
    stack: contextlib.ExitStack,
    room: Path | None = None,
    **sections: Mapping[str, Any],
) -> AuditResult:
    """Audit a source and what was made of it, and look at every layer.

    Args:
        options: Of the command line.
        paths: The source first, the target last.
        stack: What the audit writes stays until it's left.
        room: Where it writes; default: a folder that is removed.
        sections: Of the configuration, over what the options say.

    Returns:
        With one row for each file, in their order.

    Raises:
        ConrepairError: what kept the source or the target from being looked at (not: from being repaired).
    """
    names = [f"{slug(path)}-{place}" for place, path in enumerate(paths)]
    if room is None:
        room = stack.enter_context(scratch_folder(Path(tempfile.gettempdir()), SCRATCH))
    content = _config(options, dict(zip(names, paths, strict=True)), room)
    content |= {name: content.get(name, {}) | section for name, section in sections.items()}
    display = stack.enter_context(ProgressDisplay(quiet=options.quiet))
    result = run_audit(parse_config(content, "command line"), Path.cwd(), display, stack)
    by_name = {row.model: row for row in result.rows}
    rows = tuple(by_name[name] for name in names)
    for row in (rows[0], rows[-1]):
        problem = row.localized.problem or (row.problem if row.localized.result is None else None)
        if problem is not None:
            raise error_of(problem)
    return dataclasses.replace(result, rows=rows)


def _config(options: argparse.Namespace, files: dict[str, Path], scratch: Path) -> dict[str, Any]:
    """By the models' names, the source's first."""
    inputs = [parse_input(text) for text in options.input] or None
    (first, source), *others = files.items()
    own = given({"recipe": given_recipe(options.recipe), "inputs": inputs})
    models: list[dict[str, Any]] = [{"name": first, "path": str(source)} | own]
    for name, path in others:
        last = name == others[-1][0]
        recipe = given_recipe((options.target_recipe if last else None) or options.recipe)
        models.append({"name": name, "path": str(path), "compare_with": first} | given({"recipe": recipe}))
    return {
        "output": str(scratch),
        "dataset": dataset_of(options) | ({"limit": options.samples} if options.data is not None else {}),
        "limits": {"workers": 1, "seconds": options.timeout},
        "stages": {"localize": True},
        "localize": localize_section(options),
        "tolerance": given({"noise_margin": options.margin}),
        "models": models,
    }

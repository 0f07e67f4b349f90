"""Audit a model and a build of it that was made before."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.backends.tvm.build import BUILD
from conrepair.config.load import parse_config
from conrepair.pipeline.audit import run_audit
from conrepair.pipeline.evaluation import error_of
from conrepair.pipeline.options import dataset_of, given, given_recipe, localize_section, parse_input, slug
from conrepair.report.result import AuditResult
from conrepair.runtime.errors import UsageError
from conrepair.runtime.progress import ProgressDisplay
from conrepair.runtime.scratch import SCRATCH, scratch_folder

__all__ = ["compare_build", "is_build"]


def is_build(path: Path) -> bool:
    """Whether a folder is a build of TVM."""
    return (path / BUILD).is_file()


def compare_build(
    options: argparse.Namespace,
    source: Path,
    build: Path,
    stack: contextlib.ExitStack,
    room: Path | None = None,
    **sections: Mapping[str, Any],
) -> AuditResult:
    """Run a model in its own library, and a build; and look into every kernel.

    Args:
        options: Of the command line.
        source: The model that is right.
        build: Folder of what was compiled of it, or of a conversion of it.
        stack: What the audit writes stays until it's left.
        room: Where it writes; default: a folder that is removed.
        sections: Of the configuration, over what the options say.

    Returns:
        With two rows: of the model, and of the build.

    Raises:
        ConrepairError: what kept one of them from being looked at (not: from being repaired).
    """
    if options.target_recipe is not None:
        raise UsageError("a build is fed as its source is, so --target-recipe has no meaning for it. Leave it out.")
    if room is None:
        room = stack.enter_context(scratch_folder(Path(tempfile.gettempdir()), SCRATCH))
    inputs = [parse_input(text) for text in options.input] or None
    model: dict[str, Any] = {"name": slug(source), "path": str(source)}
    # Each kernel's results are computed anew where layers are compared: one sample is enough to see that they can be.
    compiled = {"name": "tvm", "label": "build", "built": str(build), "debug_enabled": True, "debug_samples": 1}
    content: dict[str, Any] = {
        "output": str(room),
        "dataset": dataset_of(options) | ({"limit": options.samples} if options.data is not None else {}),
        "limits": {"workers": 1, "seconds": options.timeout},
        "stages": {"localize": True},
        "localize": localize_section(options),
        "tolerance": given({"noise_margin": options.margin}),
        "backends": ["libraries", compiled],
        "models": [model | given({"recipe": given_recipe(options.recipe), "inputs": inputs})],
    }
    content |= {name: content.get(name, {}) | section for name, section in sections.items()}
    display = stack.enter_context(ProgressDisplay(quiet=options.quiet))
    result = run_audit(parse_config(content, "command line"), Path.cwd(), display, stack)
    rows = {row.backend: row for row in result.rows}
    first, row = rows["libraries"], rows["build"]
    for item in (first, row):
        problem = item.localized.problem or (item.problem if item.localized.result is None else None)
        if problem is not None:
            raise error_of(problem)
    return dataclasses.replace(result, rows=(first, row))

"""Where a converted model goes among a person's files, with its weights beside it."""

from __future__ import annotations

import re
from pathlib import Path

from conrepair.runtime.errors import UsageError
from conrepair.runtime.outputs import Output

__all__ = ["check_model_output", "model_output"]


def model_output(path: Path) -> Output:
    """A model's file or folder.

    Args:
        path: Where it shall stand.
    """
    return Output(path, "conversion", beside=True)


def check_model_output(path: Path, *, force: bool) -> None:
    """Make sure that writing a model replaces none but an earlier conversion's, nor anybody's weights.

    Args:
        path: Where it shall stand.
        force: Whether an earlier one is replaced.

    Raises:
        UsageError: if there's one already, or something else.
        StorageError: if it can't be looked into.
    """
    output = model_output(path)
    output.check(force=force)
    weights = re.compile(rf"{re.escape(path.name)}\.data\d*")  # of an ONNX file that's too large for one
    for file in sorted(path.parent.iterdir()) if path.parent.is_dir() else ():
        if weights.fullmatch(file.name) and not (force and output.wrote(file.name)):
            raise UsageError(f"{file} exists, where the weights of {path.name} would go. Give another output.")

"""Folders that a report replaces, and what must not be lost with them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from conrepair.runtime.errors import UsageError
from conrepair.runtime.path_text import real_path

__all__ = ["check_replaceable"]


def check_replaceable(folder: Path, mark: str, what: str, inputs: Iterable[str | Path]) -> None:
    """Make sure that replacing the folder of a command loses nothing of the user's.

    Args:
        folder: What `-o` names.
        mark: A file that only an earlier folder of this sort has.
        what: That sort, for a person: "localization".
        inputs: Files and folders that are read.

    Raises:
        UsageError: if the folder is something else than an earlier one's, or holds an input.
    """
    if not folder.exists():
        return
    empty = folder.is_dir() and not any(folder.iterdir())
    if not empty and not (folder / mark).is_file():
        raise UsageError(f"{folder} exists and no {what} wrote it, so it isn't replaced. Choose another -o.")
    for path in inputs:
        if real_path(path).is_relative_to(real_path(folder)):
            raise UsageError(f"{path} lies in {folder}, which this {what} would replace. Choose another -o.")

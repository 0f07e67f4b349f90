"""Paths of the older form: relative to the tool's own folder, and written with a slash in front."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Places", "model_name"]


class Places:
    """Finds what a configuration names; files are looked for, never opened.

    Args:
        base: The configuration's folder, which stands for the older tool's.
    """

    def __init__(self, base: Path) -> None:
        self._base = base

    def path(self, text: str) -> str:
        """A path as our form writes it: relative to the configuration's folder.

        A path that lies nowhere below that folder, but is there as it's written, stays as it is.
        """
        below = posixpath.normpath(text.strip().lstrip("/")) if text.strip("/ ") else "."
        if text.startswith("/") and not _exists(self._base / below) and _exists(Path(text)):
            return posixpath.normpath(text)
        return below

    def first(self, name: str, folders: Sequence[str | None]) -> str:
        """Where a file is: as it's written, or in the first of the folders that has it.

        Args:
            name: Of the file.
            folders: Older paths; None is passed over.

        Returns:
            The path as our form writes it; the name alone where the file is nowhere.
        """
        plain = self.path(name)
        candidates = [plain, *(self.path(f"{folder}/{name}") for folder in folders if folder)]
        return next((path for path in candidates if _exists(self._base / path)), plain)

    def has(self, path: str) -> bool:
        """Whether there is a file or a folder of that path."""
        return _exists(self._base / path)


def model_name(text: str, taken: Sequence[str] = ()) -> str:
    """A name that our form allows, and that nobody has yet.

    Args:
        text: What it's made of.
        taken: Names that are given.
    """
    name = re.sub(r"[^A-Za-z0-9._-]", "_", text).lstrip("._-") or "model"
    number, result = 2, name
    while result in taken:
        result, number = f"{name}-{number}", number + 1
    return result


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long a name, or a folder that may not be looked into
        return False

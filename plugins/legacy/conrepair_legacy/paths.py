"""Paths of the older form: relative to the tool's own folder, and written with a slash in front."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from conrepair.ground.runtime.path_text import fitting_name

_LETTERS = 90  # of a name, with a few left for a number


class PathFinder:
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


def model_name(text: str) -> str:
    """A name that our form allows.

    Args:
        text: What it's made of.
    """
    return fitting_name(re.sub(r"[^A-Za-z0-9._-]", "_", text).lstrip("._-") or "model", _LETTERS)


class ModelNames:
    """Names of models, of which nobody gets another's."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: Counter[str] = Counter()

    def new(self, text: str) -> str:
        """A name that our form allows, and that nobody has yet.

        Args:
            text: What it's made of.
        """
        name = result = model_name(text)
        while result in self._taken:
            self._numbers[name] += 1
            result = f"{name}-{self._numbers[name] + 1}"
        self._taken.add(result)
        return result


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long a name, or a folder that may not be looked into
        return False

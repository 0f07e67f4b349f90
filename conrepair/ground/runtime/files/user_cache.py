"""Where results of commands that name no folder for them are kept: the user's cache, below a limit."""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from conrepair.ground.runtime.bounds import MOST_GIGABYTES
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.ordinary_file import read_ordinary
from conrepair.ground.runtime.files.whole import make_folder, write_text
from conrepair.ground.runtime.path_text import path_problem
from conrepair.ground.runtime.words import shortened

FOLDER, LIMIT = "CONREPAIR_CACHE", "CONREPAIR_CACHE_LIMIT"
_DEFAULT_GB = 5.0
_KEPT_LIMIT = ".limit"
_SHOWN = 40
_SHORT = 1000  # bytes of a number


@dataclass(frozen=True)
class UserCache:
    """A folder and what it may take.

    Attributes:
        folder: Root of a store.
        gigabytes: The limit.
    """

    folder: Path
    gigabytes: float

    @property
    def limit(self) -> int:
        """In bytes."""
        return int(self.gigabytes * 1e9)

    def make(self) -> None:
        """Make the folder, for its owner alone: answers of models are nobody else's business.

        Raises:
            StorageError: if it can't be made.
        """
        make_folder(self.folder.parent)
        with contextlib.suppress(OSError):  # the store says what's wrong there
            self.folder.mkdir(mode=0o700, exist_ok=True)


def user_cache() -> UserCache | None:
    """The user's cache; None where an empty `CONREPAIR_CACHE` says that there's none. Its limit may be 0.

    Raises:
        UsageError: if the limit is no number, or the folder no path.
    """
    named = os.environ.get(FOLDER)
    if named == "":
        return None
    if named and (problem := path_problem(named, output=True)):
        raise UsageError(f"{FOLDER}: {problem}")
    folder = Path(named or Path(platformdirs.user_cache_dir("conrepair", appauthor=False)) / "results").absolute()
    return UserCache(folder, _limit(folder))


def set_limit(folder: Path, gigabytes: float) -> None:
    """Keep a limit for commands to come.

    Raises:
        StorageError: if it can't be written.
        UsageError: if a file of somebody's has its name.
    """
    file = folder / _KEPT_LIMIT
    if file.exists() and file.stat().st_size and _kept_limit(folder) is None:
        raise UsageError(f"{file} isn't conrepair's, and would be replaced. Name another folder by {FOLDER}.")
    write_text(file, f"{gigabytes:g}\n")


def limit_named(variable: str, usual: float) -> float:
    """The most gigabytes that something may take in the cache.

    Args:
        variable: That says it.
        usual: Where it doesn't.

    Raises:
        UsageError: if it says no number.
    """
    text = os.environ.get(variable, "").strip()
    value = _number(text) if text else usual
    if value is None:
        raise UsageError(
            f"{variable} is {shortened(text, _SHOWN)}: give the most gigabytes that may be taken in the cache "
            f"({usual:g} without it; 0: keep none)."
        )
    return value


def _limit(folder: Path) -> float:
    kept = _kept_limit(folder)
    return limit_named(LIMIT, _DEFAULT_GB if kept is None else kept)


def _kept_limit(folder: Path) -> float | None:
    try:
        return _number(read_ordinary(folder / _KEPT_LIMIT, _SHORT).decode())
    except (OSError, ValueError):
        return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= MOST_GIGABYTES else None

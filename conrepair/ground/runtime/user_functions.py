"""Functions of a user's own by their names: programs, with the user's rights in the process that loads them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.errors import ModelLoadError, UsageError
from conrepair.ground.runtime.outside.script_process import load_module


def user_function(named: str, base: Path) -> Callable[..., Any]:
    """Load a function.

    Args:
        named: "FILE.py:FUNCTION" or "MODULE:FUNCTION".
        base: Folder that relative paths start from; modules in it are found behind those that are installed.

    Raises:
        UsageError: if it isn't there.
        ModelLoadError: if importing what holds it fails.
    """
    place, _, name = named.rpartition(":")
    if place.endswith(".py"):
        place = str((base / place).absolute())
        if not Path(place).is_file():
            raise UsageError(f"{named}: there is no file {place}.")
    found: Any = getattr(module_at(place, base.absolute()), name, None)
    if not callable(found):
        raise UsageError(f"{named}: {place} has no function {name!r}.")
    function: Callable[..., Any] = found
    return function


@cache
def module_at(place: str, folder: Path = Path()) -> Any:
    """A module, by its name or its file.

    Args:
        place: Either.
        folder: That a module is looked for in, behind what's installed; a file finds what lies beside it.

    Raises:
        ModelLoadError: if that fails.
    """
    file = place.endswith(".py")
    reached = str(Path(place).parent if file else folder)
    if reached not in sys.path:
        sys.path.append(reached)
    try:
        name = f"_conrepair_function_{Path(place).stem}"
        return load_module(Path(place), name) if file else importlib.import_module(place)
    # A user's module may raise anything when it's imported.
    except Exception as error:
        raise ModelLoadError(f"importing {place} failed: {type(error).__name__}: {error}") from error

"""Modules of the user's own, in folders that Python looks into only once a configuration has named a module there."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

_offered: list[str] = []


def offer_folders(folders: Sequence[str]) -> None:
    """Say where the user's modules may be; nothing is imported from there yet."""
    _offered[:] = folders


def reach_module(name: str) -> None:
    """Make a module importable that somebody named, and what lies beside it: behind everything that's installed.

    Args:
        name: "package.module".
    """
    package = name.partition(".")[0]
    if package in sys.modules or importlib.util.find_spec(package) is not None:
        return
    for folder in _offered:
        if (Path(folder) / package).is_dir() or (Path(folder) / f"{package}.py").is_file():
            sys.path.append(folder)
            return


def reach_modules() -> None:
    """Make all of them importable: for a file whose code may run."""
    sys.path.extend(folder for folder in _offered if folder not in sys.path)


def isolated() -> dict[str, str]:
    """Variables for a Python process that doesn't look into its current folder, nor do those that it starts."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(filter(os.path.isabs, named))}


def library_path() -> list[str]:
    """Where this process finds modules, but for the current folder that Python puts first for `-c` and `-m`.

    It stays where conrepair itself comes from there, and where the user's PYTHONPATH names it.
    """
    own = Path(__file__).resolve().parents[3]
    named = {Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    here = Path.cwd()
    return [
        entry for entry in sys.path if entry and (Path(entry).resolve() != here.resolve() or here in {own, *named})
    ]

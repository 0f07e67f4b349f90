"""Load and run programs of systems, one at a time; runs in other environments, so it imports nothing of conrepair."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

PROGRAM = "program.py"
"""A module in the model's folder: imported, it loads the model; `record()` tells of it, and `run()` runs it."""

_MODULE = "program"
_loaded: list[str] = []  # the folder of the one that is


def load(arguments: dict[str, Any]) -> dict[str, Any]:
    """Import the program of a folder.

    Args:
        arguments: "folder".

    Returns:
        Its record.
    """
    os.chdir(arguments["folder"])
    _loaded.clear()
    sys.modules.pop(_MODULE, None)
    starter: Any = sys.modules["__main__"]  # script_process
    starter.load_module(Path(PROGRAM).absolute(), _MODULE)
    _loaded.append(arguments["folder"])
    record: dict[str, Any] = sys.modules[_MODULE].record()
    return record


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run the program of a folder, which holds the inputs and gets the outputs.

    Args:
        arguments: "folder".
    """
    if arguments["folder"] not in _loaded:
        load(arguments)
    os.chdir(arguments["folder"])
    sys.modules[_MODULE].run()
    return {}

"""What runs in the process of a script: python script_process.py SCRIPT REQUESTS ANSWERS PARENT.

Calls come as lines of JSON through one pipe, and what they return goes back through the other. It runs under the
Python of other environments, so it imports nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)
_MODULE = "conrepair_script"


def main() -> None:
    """Answer calls of the script's functions until there are no more."""
    script, requests, answers, parent = sys.argv[1:]
    _end_with(int(parent))
    sys.argv = [script]
    with os.fdopen(int(requests), encoding="utf-8") as asked, os.fdopen(int(answers), "w", encoding="utf-8") as told:
        for line in asked:
            told.write(_answer(Path(script), json.loads(line)) + "\n")
            told.flush()


def _answer(script: Path, call: Any) -> str:
    try:
        function = getattr(sys.modules.get(_MODULE) or load_module(script, _MODULE), call["function"])
        return json.dumps({"value": function(call["arguments"])}, allow_nan=False)
    # The boundary of the process: whatever the tool raises is the answer.
    except BaseException as error:  # noqa: BLE001
        traceback.print_exc()
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
        return json.dumps({"error": {"type": type(error).__name__, "message": str(error), "place": place}})


def load_module(path: Path, name: str) -> Any:
    """Import a file as a module of that name, where classes of it are looked up."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and others look themselves up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _end_with(parent: int) -> None:
    """Die when the parent does, also when it's killed and can't say goodbye (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the call
        sys.exit(1)


if __name__ == "__main__":
    main()

"""What runs in the process of a script: python script_process.py SCRIPT ARGUMENTS RESULT PARENT.

It runs under the Python of other environments, so it imports nothing but the standard library.
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
    """Call the script's `main` with the arguments; write its result, or what it raised."""
    script, arguments, result, parent = sys.argv[1:]
    _end_with(int(parent))
    sys.argv = [script]
    try:
        answer = {"value": _load(Path(script)).main(json.loads(Path(arguments).read_text(encoding="utf-8")))}
        text = json.dumps(answer, allow_nan=False)
    # The boundary of the process: whatever the tool raises is the answer.
    except BaseException as error:  # noqa: BLE001
        traceback.print_exc()
        text = json.dumps({"error": {"type": type(error).__name__, "message": str(error)}})
    temporary = Path(f"{result}.part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(result)


def _end_with(parent: int) -> None:
    """Die when the parent does, also when it's killed and can't say goodbye (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the call
        sys.exit(1)


def _load(script: Path) -> Any:
    spec = importlib.util.spec_from_file_location(_MODULE, script)
    if spec is None or spec.loader is None:
        raise ImportError(f"{script} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module  # where classes of the script are looked up by their module's name
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()

"""conrepair audits what happens to a neural network when its representation changes."""

from __future__ import annotations

import importlib
import os  # and nothing that isn't loaded yet: `python -m conrepair` might find it in the current folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from conrepair.api import audit, build, compare, convert, execute, generated, inspect, localize, repair
    from conrepair.runtime.errors import ConrepairError

__version__ = "0.1.0"
__all__ = [
    "ConrepairError",
    "__version__",
    "audit",
    "build",
    "compare",
    "convert",
    "execute",
    "generated",
    "inspect",
    "localize",
    "repair",
]

_ERRORS = "conrepair.runtime.errors"

# ONNX Runtime would leave an identifier in the user's cache and send events, from when it's imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def __getattr__(name: str) -> Any:
    """Import a verb when it's asked for: `import conrepair` alone costs next to nothing."""
    if name in __all__:
        return getattr(importlib.import_module(_ERRORS if name == "ConrepairError" else "conrepair.api"), name)
    raise AttributeError(f"module 'conrepair' has no attribute {name!r}")

"""Check whether a converted neural network still gives the same predictions, name the faulty layer, repair it.

What there is by name, and of which module, says the stub beside this file, for type checkers and for `__getattr__`.
"""

from __future__ import annotations

import importlib
import os  # and nothing that isn't loaded yet: `python -m conrepair` might find it in the current folder
import sys

__version__ = "0.2.0"

# ONNX Runtime would leave an identifier in the user's cache and send events, from when it's imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def _places() -> dict[str, str]:
    """Modules of this package by the names that come from them."""
    found = importlib.import_module("conrepair.ground.runtime.stub").places_in(__file__)
    return {name: place for name, place in found.items() if place.startswith("conrepair.")}


def __dir__() -> list[str]:
    """What there is, also before it's imported: for completion, and for what Python says of a name that's wrong."""
    return [*globals(), *_places()]


def __getattr__(name: str) -> object:
    """Import a verb or a type when it's asked for: `import conrepair` alone costs next to nothing."""
    if name == "__all__":
        return sorted(["__version__", *_places()])
    hint = ""
    if not name.startswith("_"):  # Python itself asks for those
        if name in (known := _places()):
            return getattr(importlib.import_module(known[name]), name)
        from conrepair.ground.runtime.plugins import FUNCTIONS

        if name in FUNCTIONS:  # as `trace`, of the laboratory
            return FUNCTIONS[name]
        hint = importlib.import_module("conrepair.ground.runtime.libraries").brings(name)
    raise AttributeError(f"module 'conrepair' has no attribute {name!r}{hint}", name=name, obj=sys.modules[__name__])

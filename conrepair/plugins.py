"""What plug-ins are made of (docs/plugins.md): these names stay what they are from release to release.

Which they are, and of which module, says the stub beside this file, for type checkers and for `__getattr__`.
"""

from __future__ import annotations

import importlib

from conrepair.ground.runtime.stub import places_in

_PLACES = places_in(__file__)


def __dir__() -> list[str]:
    return [*globals(), *_PLACES]


def __getattr__(name: str) -> object:
    """Import a type when it's asked for: a plug-in that's only listed costs next to nothing."""
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'conrepair.plugins' has no attribute {name!r}")

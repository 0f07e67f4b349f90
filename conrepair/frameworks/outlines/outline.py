"""An outline, and how to get one."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from conrepair.frameworks.model import Description, Model

_MOST = 6


@dataclass(frozen=True)
class Outline:
    """What a file says.

    Attributes:
        description: Without what only running tells (shapes that aren't in the file).
        missing: What it needs and isn't there, each a sentence that says what to do about it.
    """

    description: Description
    missing: tuple[str, ...] = ()


def outline(model: Model) -> Outline | None:
    """Read a model's file, and run nothing of it; None where it can't be read: it's damaged, or of another format.

    Args:
        model: Of any framework.
    """
    reader: Any = importlib.import_module(f"conrepair.frameworks.outlines.{model.framework}")
    try:
        result: Outline = reader.outline(model)
    # Reading a damaged file raises whatever its bytes make of it, in all libraries: that's how it shows.
    except Exception:  # noqa: BLE001
        return None
    return result


def counted(names: list[str]) -> str:
    """Names with how often each occurs: "Erf (2), Foo"."""
    different = list(dict.fromkeys(names))
    words = [f"{name} ({names.count(name)})" if names.count(name) > 1 else name for name in different[:_MOST]]
    more = [f"{len(different) - _MOST} more"] if len(different) > _MOST else []
    return ", ".join(words + more)

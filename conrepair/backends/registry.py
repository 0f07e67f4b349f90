"""Find a backend by name."""

from __future__ import annotations

from conrepair.backends import libraries, onnxruntime
from conrepair.backends.base import Backend

__all__ = ["BACKENDS", "backend"]

BACKENDS: dict[str, Backend] = {
    "libraries": libraries.BACKEND,
    "onnxruntime": onnxruntime.BACKEND,
}


def backend(name: str) -> Backend:
    """Return the backend of that name.

    Args:
        name: A key of `BACKENDS`.
    """
    return BACKENDS[name]

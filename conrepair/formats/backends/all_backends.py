"""Find a backend by name; it's imported when it's asked for."""

from __future__ import annotations

from conrepair.formats.backends.base import Backend, Compiler
from conrepair.ground.runtime.plugins import Registry

BACKENDS: Registry[Backend] = Registry(
    "backends",
    {
        "libraries": "conrepair.formats.backends.libraries:BACKEND",
        "onnxruntime": "conrepair.formats.backends.onnxruntime:BACKEND",
        "tflite": "conrepair.formats.backends.tflite:BACKEND",
        "inductor": "conrepair.formats.backends.inductor:BACKEND",
        "xla": "conrepair.formats.backends.xla:BACKEND",
        "tvm": "conrepair.formats.tvm.backend:BACKEND",
    },
    Backend,
)


PLUGINS = ("executorch", "iree", "openvino", "qnn", "tract")
"""Backends of the repository's plug-ins, by the names of their folders in `plugins/`, too."""


def backend(name: str) -> Backend:
    """Return the backend of that name.

    Args:
        name: A key of `BACKENDS`.
    """
    return BACKENDS[name]


def compiles(name: str) -> bool:
    """Whether a backend runs what it has compiled.

    Args:
        name: A key of `BACKENDS`.
    """
    return isinstance(BACKENDS[name], Compiler)


def compiler(name: str) -> Compiler:
    """Return the compiler of that name.

    Args:
        name: A key of `BACKENDS` that `compiles`.
    """
    found = BACKENDS[name]
    if not isinstance(found, Compiler):
        raise KeyError(name)
    return found

"""Find a backend by name."""

from __future__ import annotations

from conrepair.formats.backends import inductor, libraries, onnxruntime, tflite, xla
from conrepair.formats.backends.base import Backend, Compiler
from conrepair.formats.tvm import backend as tvm

COMPILERS: dict[str, Compiler] = {"tvm": tvm.BACKEND}

BACKENDS: dict[str, Backend] = {
    "libraries": libraries.BACKEND,
    "onnxruntime": onnxruntime.BACKEND,
    "tflite": tflite.BACKEND,
    "inductor": inductor.BACKEND,
    "xla": xla.BACKEND,
    **COMPILERS,
}


def backend(name: str) -> Backend:
    """Return the backend of that name.

    Args:
        name: A key of `BACKENDS`.
    """
    return BACKENDS[name]

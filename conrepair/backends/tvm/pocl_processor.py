"""Tell PoCL a processor that its compiler knows, where it doesn't know the one that it runs on.

PoCL asks LLVM for the processor's name and hands it back to LLVM. An LLVM that is older than the processor says
"generic", which it doesn't take: no kernel compiles. Newer PoCL reads POCL_LLVM_CPU_NAME; PoCL 3.0, the one that is a
Python package, has no setting for it, so the name is replaced in PoCL's description of the device (`struct
_cl_device_id`, where it follows the triple of the platform).
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
from pathlib import Path
from typing import Any

__all__ = ["SETTING", "is_unknown_processor", "name_processor", "processor"]

SETTING = "POCL_LLVM_CPU_NAME"
_UNKNOWN = b"generic"
_VERSION = "PoCL 3.0"
_STRUCT = 1024  # bytes of the description in which the name is looked for; it's at 640
_POINTER = ctypes.sizeof(ctypes.c_void_p)
_LONGEST = 64
# As PoCL 3.0 chooses its library of functions, whose vectors must be passed as kernels pass theirs.
_NAMES = (("avx512f", "skylake-avx512"), ("avx2", "haswell"), ("avx", "sandybridge"), ("sse4_1", "penryn"))


def is_unknown_processor(text: str) -> bool:
    """Whether a compiler's output says that the processor's name means nothing to it."""
    return "unknown target CPU" in text


def processor() -> str:
    """A name that LLVM has known for long, of a processor that this one can stand for; the user's, where it's set."""
    flags: set[str] = set()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        flags = set(next((line for line in lines if line.startswith("flags")), "").split())
    return os.environ.get(SETTING) or next((name for flag, name in _NAMES if flag in flags), "x86-64")


def name_processor(device: Any) -> bool:
    """Have PoCL 3.0 compile for `processor()` from now on.

    Args:
        device: Of pyopencl.

    Returns:
        Whether that was possible: only where the description is what it's known to be.
    """
    if _VERSION not in device.platform.version:
        return False
    place = _place(int(device.int_ptr))
    if place is None:
        return False
    library = ctypes.CDLL(None)
    library.strdup.restype = ctypes.c_void_p  # PoCL's to free
    ctypes.c_void_p.from_address(place).value = library.strdup(processor().encode())
    return True


def _place(address: int) -> int | None:
    """Where the pointer to the name is, behind that to the triple; read without touching what isn't there."""
    with contextlib.suppress(OSError), Path("/proc/self/mem").open("rb", buffering=0) as memory:
        fields = os.pread(memory.fileno(), _STRUCT, address)
        texts = [
            _text(memory.fileno(), fields[place : place + _POINTER]) for place in range(0, len(fields), _POINTER)
        ]
        for number, (triple, name) in enumerate(itertools.pairwise(texts), 1):
            if b"-linux-" in triple and name == _UNKNOWN:
                return address + number * _POINTER
    return None


def _text(memory: int, pointer: bytes) -> bytes:
    """What a pointer points to, as a string of C; empty where it doesn't."""
    with contextlib.suppress(OSError, OverflowError):
        text, end, _ = os.pread(memory, _LONGEST, int.from_bytes(pointer, "little")).partition(b"\0")
        return text if end else b""
    return b""

"""Give memory back to the system once it's freed."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

__all__ = ["large_blocks_returned", "return_freed"]

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h
_SMALL, _USUAL = 4 << 20, 32 << 20  # bytes; the latter is where glibc lets the threshold rise to


@contextlib.contextmanager
def large_blocks_returned() -> Iterator[None]:
    """While the block runs, what's larger than 4 MiB is mapped by itself, and gone when it's freed.

    glibc keeps blocks of up to 32 MiB for later instead, between which others pin them: what streams activations of
    that size then holds many times what it uses. Other C libraries are left as they are.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        yield
        return
    set_option(_MMAP_THRESHOLD, _SMALL)
    try:
        yield
    finally:
        set_option(_MMAP_THRESHOLD, _USUAL)


def return_freed() -> None:
    """Give back what's free between blocks that are in use, of every thread.

    glibc gives back by itself what's free at the end of its heap only.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

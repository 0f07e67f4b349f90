"""Give up what the superuser may do beyond reading and writing files (capabilities(7))."""

from __future__ import annotations

import ctypes

__all__ = ["give_up"]

_DROP_FROM_BOUND = 24  # PR_CAPBSET_DROP
_VERSION = 0x20080522  # two words of bits each
_ANYBODYS_FILES = 1 << 1 | 1 << 2 | 1 << 3  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
_BITS = 64


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))


class _Words(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def give_up() -> None:
    """Keep of this thread's capabilities those by which root reads and writes files of others; programs get no more.

    In containers, people run as root and their files belong to others. Whoever has no capabilities loses none.
    """
    system = ctypes.CDLL(None)
    for number in range(_BITS):
        if not _ANYBODYS_FILES >> number & 1:
            system.prctl(_DROP_FROM_BOUND, number, 0, 0, 0)
    header, words = _Header(_VERSION, 0), (_Words * 2)()
    if system.capget(ctypes.byref(header), words) == 0:
        kept = words[0].permitted & _ANYBODYS_FILES
        words[0], words[1] = _Words(kept, kept, 0), _Words(0, 0, 0)
        system.capset(ctypes.byref(header), words)

"""Landlock: keep this process from changing files outside of some folders (Linux 5.13 and later)."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence

SCOPES = 6
"""The version from which on signals to other processes, and their abstract sockets, are out of reach."""

# Numbers that all architectures share, and bits, as in linux/landlock.h.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_WRITE_FILE, _TRUNCATE, _DEVICE_CONTROL = 1 << 1, 1 << 14, 1 << 15
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_MAKE_DEVICES = 1 << 6 | 1 << 11  # which who runs as root could write to
_REFER = 1 << 13
_SIGNALS_AND_ABSTRACT_SOCKETS = 3
_SINCE = {_WRITE_FILE: 1, _REMOVE_AND_MAKE: 1, _REFER: 2, _TRUNCATE: 3, _DEVICE_CONTROL: 5}


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """Of the kernel's Landlock; 0 where it has none, or it's switched off."""
    return max(0, _call(_CREATE_RULESET, None, 0, _ASK_VERSION)) if sys.platform == "linux" else 0


def restrict(folders: Sequence[str], devices: Sequence[str]) -> int:
    """Let this thread, and what it starts from now on, write nowhere but here; it needs `PR_SET_NO_NEW_PRIVS`.

    Args:
        folders: Where files are made, changed and removed.
        devices: Files, or folders of such, that are written to, and told what to do.

    Returns:
        The version that holds; 0 where nothing does.

    Raises:
        OSError: if a path isn't there.
    """
    known = version()
    if not known:
        return 0
    handled = sum(bits for bits, since in _SINCE.items() if since <= known)
    asked = _Ruleset(handled, 0, _SIGNALS_AND_ABSTRACT_SOCKETS if known >= SCOPES else 0)
    ruleset = _call(_CREATE_RULESET, ctypes.byref(asked), 24 if known >= SCOPES else 8, 0)
    if ruleset < 0:
        return 0
    try:
        inside = handled & ~(_MAKE_DEVICES | _DEVICE_CONTROL)
        told = handled & (_WRITE_FILE | _TRUNCATE | _DEVICE_CONTROL)
        for path, rights in [*((path, inside) for path in folders), *((path, told) for path in devices)]:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                rule = _Beneath(rights, descriptor)
                if _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0) < 0:
                    return 0
            finally:
                os.close(descriptor)
        return known if _call(_RESTRICT_SELF, ruleset, 0) == 0 else 0
    finally:
        os.close(ruleset)


def _call(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))

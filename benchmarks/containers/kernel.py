"""A kernel that has no Landlock: for this process, and what it starts from now on."""

from __future__ import annotations

import ctypes
import errno
import struct

from conrepair.ground.runtime.processes import landlock

__all__ = ["leave_landlock_out"]

_NO_NEW_PRIVILEGES, _SET_FILTER, _MODE_FILTER = 38, 22, 2  # of prctl
_LOAD, _AT_LEAST, _ABOVE, _RETURN = 0x20, 0x35, 0x25, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_FIRST, _LAST = 444, 446  # landlock_create_ruleset to landlock_restrict_self, on all architectures


def leave_landlock_out() -> None:
    """Have Landlock's calls answered with ENOSYS, as a kernel answers that was built without.

    Raises:
        RuntimeError: if this kernel filters no calls.
    """
    steps = (
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 2, _FIRST),
        (_ABOVE, 1, 0, _LAST),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
        (_RETURN, 0, 0, _ALLOW),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    library = ctypes.CDLL(None)
    library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if library.prctl(_SET_FILTER, _MODE_FILTER, program, 0, 0) != 0 or landlock.version():
        raise RuntimeError("this kernel filters no calls, so Landlock can't be left out")

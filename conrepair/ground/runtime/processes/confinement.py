"""Confine this process to reading: what a worker does before it's given its first job.

Landlock keeps it from changing files outside of its folders, and from signals to others; seccomp from the network,
from other programs' sockets, and from all else that reaches beyond a process. The kernel's documentation
(userspace-api/landlock.rst, userspace-api/seccomp_filter.rst) says what each of them means. What's confined stays so,
and so is all that it starts.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from conrepair.ground.runtime.gpu_devices import gpu_devices
from conrepair.ground.runtime.processes import landlock, seccomp
from conrepair.ground.runtime.processes.reach import CONFINED, GPU, NETWORK, OPEN

__all__ = ["CONFINED", "GPU", "NETWORK", "OPEN", "Hold", "confine", "held", "kept_from", "within_reach"]


# Give up what the superuser may do beyond reading and writing files (capabilities(7)).

_DROP_FROM_BOUND = 24  # PR_CAPBSET_DROP
_VERSION = 0x20080522  # two words of bits each
_ANYBODYS_FILES = 1 << 1 | 1 << 2 | 1 << 3  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
_BITS = 64


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))


class _Words(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def _give_up() -> None:
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


_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
_THREADS = "/proc/self/task"  # CUDA names its threads, and doesn't start where it can't


@dataclass(frozen=True)
class Hold:
    """What a process is kept from.

    Attributes:
        files: Changing files outside of its folders.
        network: Sockets of any kind.
        others: Signals to processes that it didn't start.
    """

    files: bool = False
    network: bool = False
    others: bool = False

    @property
    def full(self) -> bool:
        """Whether code that runs there can neither change nor tell anything outside."""
        return self.files and self.network

    def __str__(self) -> str:
        """For people."""
        kept = {"files": self.files, "the network": self.network, "other processes": self.others}
        lacks = [name for name, holds in kept.items() if not holds]
        if not lacks:
            return f"kept from {', '.join(kept)}"
        return f"not kept from {', '.join(lacks)}" + (
            "" if len(lacks) == len(kept) else f"; kept from {', '.join(name for name, ok in kept.items() if ok)}"
        )


_held = Hold()  # of this process
_folders: tuple[str, ...] = ()  # that it may write in, where it's kept from others


def held() -> Hold:
    """What this process is kept from."""
    return _held


def within_reach(reach: str) -> Hold:
    """What a worker of this reach would be kept from on this machine, as far as the kernel says."""
    version, filters = landlock.version(), seccomp.available()
    if reach == OPEN:
        return Hold()
    return Hold(version > 0, filters and reach != NETWORK, version >= landlock.SCOPES)


def confine(folders: Sequence[str], reach: str) -> dict[str, bool]:
    """Confine this process, which must not have started a thread yet, as far as the kernel has the means.

    Args:
        folders: That it may write in, with all that's below.
        reach: One of `conrepair.ground.runtime.processes.reach`; `OPEN` changes nothing.

    Returns:
        The fields of what `held` says from now on.
    """
    global _held, _folders
    if reach != OPEN and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _give_up()
        devices = [*_DEVICES, *((*gpu_devices(), _THREADS) if reach == GPU else ())]
        files, filters = landlock.restrict(folders, list(filter(_exists, devices))), seccomp.restrict(reach)
        _held = Hold(files > 0, filters and reach != NETWORK, files >= landlock.SCOPES)
        _folders = tuple(folders) if _held.files else ()
    return asdict(_held)


def kept_from(error: BaseException) -> str | None:
    """Say of an error that this process was kept from a file outside of its folders; None where it wasn't."""
    name = error.filename if isinstance(error, PermissionError) else None
    if not _folders or not isinstance(name, str):
        return None
    path = Path(name).resolve()
    if any(path.is_relative_to(folder) for folder in _folders):
        return None
    return (
        f"what ran here was kept from {name}: workers write to their own folders only, and open no sockets "
        "(docs/security.md). If a library needs that file, make it beforehand."
    )


def _exists(path: str) -> bool:
    with contextlib.suppress(OSError):
        return Path(path).exists()
    return False

"""seccomp: refuse this process the calls of the kernel that reach the network and other programs."""

from __future__ import annotations

import ctypes
import errno
import platform
import sys

__all__ = ["available", "restrict"]

_SET_FILTER, _MODE_FILTER = 22, 2  # PR_SET_SECCOMP
_GET_FILTER = 21
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000  # with the number of an error
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in what a filter sees
_OTHER_CALLS = 0x40000000  # of x86-64: those of the x32 interface

_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Numbers by architecture; None where there's no such call.
_SOCKETS = {"socket": (41, 198), "io_uring_setup": (425, 425)}
_OTHERS = {
    "ptrace": (101, 117), "process_vm_writev": (311, 271), "open_by_handle_at": (304, 265),
    "mount": (165, 40), "umount2": (166, 39), "move_mount": (429, 429),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "init_module": (175, 105), "finit_module": (313, 273), "kexec_load": (246, 104), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "sethostname": (170, 161), "setdomainname": (171, 162),
    "settimeofday": (164, 170), "clock_settime": (227, 112),
}  # fmt: skip
# Modes, owners and attributes of files, which Landlock leaves open. Libraries set them on copies and mind a refusal:
# these calls do nothing and say that all is well. Not so with times: setting them is how `touch` looks for a file.
_ATTRIBUTES = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
}  # fmt: skip


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("yes", ctypes.c_uint8),
        ("no", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def available() -> bool:
    """Whether the kernel filters calls, and the numbers of this machine's are known here."""
    known = sys.platform == "linux" and platform.machine() in _MACHINES
    return known and bool(ctypes.CDLL(None).prctl(_GET_FILTER, 0, 0, 0, 0) >= 0)


def restrict(*, network: bool) -> bool:
    """Refuse this thread, and what it starts from now on, the calls above; it needs `PR_SET_NO_NEW_PRIVS`.

    Args:
        network: Whether sockets are allowed all the same.

    Returns:
        Whether the filter holds.
    """
    if not available():
        return False
    machine = platform.machine()
    place = list(_MACHINES).index(machine)
    io_uring = {"io_uring_setup": _SOCKETS["io_uring_setup"]}  # would open sockets that no filter sees
    refused = _OTHERS | (io_uring if network else _SOCKETS)
    steps: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _MACHINES[machine]),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        steps += [(_AT_LEAST, 0, 1, _OTHER_CALLS), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    for calls, answer in ((_ATTRIBUTES, 0), (refused, errno.EACCES)):
        for numbers in calls.values():
            if (number := numbers[place]) is not None:
                steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE | answer)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    program = _Program(len(steps), (_Instruction * len(steps))(*(_Instruction(*step) for step in steps)))
    return bool(ctypes.CDLL(None).prctl(_SET_FILTER, _MODE_FILTER, ctypes.byref(program), 0, 0) == 0)

"""seccomp: let this process make the calls of the kernel that it's allowed, and no others."""

from __future__ import annotations

import ctypes
import errno
import platform
import sys

from conrepair.ground.runtime.processes import kernel_calls
from conrepair.ground.runtime.processes.kernel_calls import Argument, CallRule, rules
from conrepair.ground.runtime.processes.reach import FORKING

_SET_FILTER, _MODE_FILTER = 22, 2  # PR_SET_SECCOMP
_GET_FILTER = 21
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000  # with the number of an error
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS, _ARGUMENT_BYTES = 0, 4, 16, 8  # places in what a filter sees
_ALL_BITS = 0xFFFFFFFF
_MACHINES = dict(zip(kernel_calls.MACHINES, (0xC000003E, 0xC00000B7), strict=True))

_Step = tuple[int, int, int, int]  # code, how many steps to leave out where it's so, and where it isn't, value


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


def restrict(reach: str) -> bool:
    """Filter the calls of this thread, and of what it starts from now on; it needs `PR_SET_NO_NEW_PRIVS`.

    Args:
        reach: How far it may reach.

    Returns:
        Whether the filter holds.
    """
    if not available():
        return False
    steps = _program(platform.machine(), reach)
    program = _Program(len(steps), (_Instruction * len(steps))(*(_Instruction(*step) for step in steps)))
    return bool(ctypes.CDLL(None).prctl(_SET_FILTER, _MODE_FILTER, ctypes.byref(program), 0, 0) == 0)


def _program(machine: str, reach: str) -> list[_Step]:
    """From the highest number down, what becomes of a call of that number or above: so that none is left out."""
    steps = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, _MACHINES[machine]), *_answer(errno.EPERM)]
    steps.append((_LOAD, 0, 0, _NUMBER))
    lowest, *others = _ranges(machine, reach)
    for first, becomes in reversed(others):
        steps += [(_AT_LEAST, 0, len(becomes), first), *becomes]
    return steps + lowest[1]


def _ranges(machine: str, reach: str) -> list[tuple[int, list[_Step]]]:
    """The numbers from which on something else becomes of a call than of the one before, and what."""
    by_number = {
        number: steps
        for calls, steps in (
            (kernel_calls.ALLOWED, [(_RETURN, 0, 0, _ALLOW)]),
            (kernel_calls.SILENT, _answer(0)),
            (kernel_calls.REFUSED, _answer(errno.EACCES)),
        )
        for number in kernel_calls.numbers(calls, machine).values()
    }
    groups = kernel_calls.numbers(kernel_calls.GROUPS, machine).values() if reach == FORKING else ()
    by_number |= {number: [(_RETURN, 0, 0, _ALLOW)] for number in groups}
    looked_at = rules(reach)
    for name, number in kernel_calls.numbers(kernel_calls.FILTERED, machine).items():
        by_number[number] = _by_arguments(looked_at[name])
    found: list[tuple[int, list[_Step]]] = []
    for number in range(max(by_number) + 2):
        becomes = by_number.get(number, _answer(errno.ENOSYS))
        if not found or found[-1][1] != becomes:
            found.append((number, becomes))
    return found


def _by_arguments(rule: CallRule) -> list[_Step]:
    steps = _answer(rule.otherwise)
    for way in reversed(rule.ways):
        allowed = [(_RETURN, 0, 0, _ALLOW)]
        for argument in reversed(way):
            allowed = _look(argument, len(allowed)) + allowed
        steps = allowed + steps
    return steps


def _look(argument: Argument, behind: int) -> list[_Step]:
    """Go on where an argument has one of its values, else behind that many steps more."""
    steps: list[_Step] = [(_LOAD, 0, 0, _ARGUMENTS + _ARGUMENT_BYTES * argument.place)]
    if argument.mask != _ALL_BITS:
        steps.append((_AND, 0, 0, argument.mask))
    last = len(argument.values) - 1
    return steps + [
        (_EQUAL, last - place, behind if place == last else 0, value) for place, value in enumerate(argument.values)
    ]


def _answer(error: int) -> list[_Step]:
    return [(_RETURN, 0, 0, _REFUSE | error)]

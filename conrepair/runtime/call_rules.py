"""Calls of the kernel that a confined process may make with some arguments only."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass

from conrepair.runtime.reach import GPU, NETWORK

__all__ = ["Argument", "CallRule", "rules"]

_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW*
_STREAM, _DATAGRAM, _PACKETS = 1, 2, 5
_KIND_OF_SOCKET = 0xF  # the other bits are flags
_LOCAL, _IP = 1, (2, 10)

# What files, pipes and terminals are asked by C libraries and compilers, and by `cp` for files that share blocks.
_ASKED = (
    *(0x5401, 0x802C542A, 0x5413, 0x540F, 0x541B, 0x5421, 0x5450, 0x5451),  # TCGETS .. FIOCLEX
    *(0x80086601, 0x801C581F, 0xC020660B, 0x40049409, 0x4020940D),  # FS_IOC_GETFLAGS .. FICLONERANGE
)
# By the byte that says whose they are: NVIDIA's memory (none), its devices, Direct Rendering, AMD's compute.
_OF_GPUS, _WHOSE = (0x0000, 0x4600, 0x6400, 0x4B00), 0xFF00
# Descriptors, their flags, locks, sizes of pipes, seals: not who gets signals of them, nor leases and hints.
_OF_DESCRIPTORS = (*range(8), 9, 36, 37, 38, 1025, 1027, 1028, *range(1030, 1036))


@dataclass(frozen=True)
class Argument:
    """One argument of a call, of which the kernel takes the lower 32 bits.

    Attributes:
        place: Which, from 0.
        values: That it may have.
        mask: Bits of it that are looked at.
    """

    place: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True)
class CallRule:
    """When a call is allowed.

    Attributes:
        ways: It is where all arguments of one of these are as they say; () for never.
        otherwise: Number of the error that it's answered with else; 0 says that all is well, and does nothing.
    """

    ways: tuple[tuple[Argument, ...], ...]
    otherwise: int = errno.EACCES


_ALWAYS = CallRule(((),))
_NEVER = CallRule(())


def rules(reach: str) -> Mapping[str, CallRule]:
    """By the names of `kernel_calls.FILTERED`.

    Args:
        reach: Of the process.
    """
    asked = (Argument(1, _ASKED),)
    of_gpus = (Argument(1, _OF_GPUS, _WHOSE),)
    # No datagrams: they're sent to whom one likes, over a pair of sockets too.
    local = (Argument(0, (_LOCAL,)), Argument(1, (_STREAM, _PACKETS), _KIND_OF_SOCKET))
    over_ip = (Argument(0, _IP), Argument(1, (_STREAM, _DATAGRAM), _KIND_OF_SOCKET))
    reached = _ALWAYS if reach == NETWORK else _NEVER
    # CUDA makes a socket for others to ask it for memory, and doesn't start where it can't.
    waited_at = _NEVER if reach not in {NETWORK, GPU} else _ALWAYS
    return {
        "clone": CallRule(((Argument(0, (0,), _NEW_NAMESPACES),),)),
        "fcntl": CallRule(((Argument(1, _OF_DESCRIPTORS),),)),
        "ioctl": CallRule((asked, of_gpus) if reach == GPU else (asked,), errno.ENOTTY),
        "prlimit64": CallRule((_own(0),)),
        "move_pages": CallRule((_own(0),)),
        # Threads have numbers, too, that a filter can't tell from those of other processes.
        "setpriority": CallRule(((Argument(0, (0,)), *_own(1)),), 0),
        "sched_setaffinity": CallRule((_own(0),), 0),
        "sched_setscheduler": CallRule((_own(0),), 0),
        "sched_setparam": CallRule((_own(0),), 0),
        "sched_setattr": CallRule((_own(0),), 0),
        "socketpair": CallRule((local,)),
        "socket": {NETWORK: CallRule((over_ip,)), GPU: CallRule((local,))}.get(reach, _NEVER),
        "bind": waited_at,
        "listen": waited_at,
        "connect": reached,
        "accept": reached,
        "accept4": reached,
    }


def _own(place: int) -> tuple[Argument, ...]:
    """The process that calls, which is called 0."""
    return (Argument(place, (0,)),)

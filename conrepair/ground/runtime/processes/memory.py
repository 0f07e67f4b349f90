"""How much memory workers may hold together, and what each of them holds."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path

# Give memory back to the system once it's freed.

_TOP_PAD, _MMAP_THRESHOLD = -2, -3  # M_TOP_PAD and M_MMAP_THRESHOLD of malloc.h
_STEP = 64 << 20  # bytes that the heap grows and shrinks by: else each array comes from the system, page by page
_SMALL, _USUAL = 4 << 20, 32 << 20  # bytes; the latter is where glibc lets the threshold rise to


@contextlib.contextmanager
def large_blocks_returned() -> Iterator[None]:
    """While the block runs, what's larger than 4 MiB is mapped by itself, and gone when it's freed.

    glibc keeps blocks of up to 32 MiB for later instead, between which others pin them: what streams activations of
    that size then holds many times what it uses. Other C libraries are left as they are.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", lambda *_: 0)
    set_option(_TOP_PAD, _STEP)
    set_option(_MMAP_THRESHOLD, _SMALL)
    try:
        yield
    finally:
        set_option(_MMAP_THRESHOLD, _USUAL)


def return_freed() -> None:
    """Give back what's free between blocks that are in use, of every thread.

    glibc gives back by itself what's free at the end of its heap only.
    """
    getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)(0)


_RESERVE, _SHARE = 1 << 30, 0.05  # bytes, and of the machine's memory: for the system, and for what grows meanwhile
_LEAST = 1 << 30  # bytes that jobs may hold in any case: where less is free, the system has to make room
_MEMORY = Path("/proc/meminfo")
_GROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)  # of version 2 and 1, as a container sees its own


def free_for_jobs() -> int | None:
    """Bytes that jobs may hold together: what's free, less a reserve. None where the system doesn't say.

    In a container, what's free within its limit.
    """
    known = _numbers(_MEMORY)
    if "MemAvailable:" not in known:
        return None
    total, free = known["MemTotal:"] << 10, known["MemAvailable:"] << 10
    for folder, limit, usage, cache in _GROUPS:
        with contextlib.suppress(OSError, ValueError):  # no such group, or one without a limit ("max")
            most = int((folder / limit).read_text(encoding="utf-8"))
            kept = _numbers(folder / "memory.stat").get(cache, 0)
            used = int((folder / usage).read_text(encoding="utf-8")) - kept
            total, free = min(total, most), min(free, most - used)
    return max(free - max(_RESERVE, int(_SHARE * total)), _LEAST)


def held_alone(process: int) -> int:
    """Bytes that a process holds and nobody else can have: not files that are mapped, which the system may drop.

    Args:
        process: Its number; 0 bytes where it's gone, or the system doesn't say.
    """
    known = _numbers(Path(f"/proc/{process}/status"))
    return sum(known.get(name, 0) for name in ("RssAnon:", "RssShmem:")) << 10


def resident(process: int) -> int:
    """Bytes that a process holds, files that are mapped among them; 0 where it's gone, or the system doesn't say."""
    return _numbers(Path(f"/proc/{process}/status")).get("VmRSS:", 0) << 10


def _numbers(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    with contextlib.suppress(OSError):
        rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
        return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}
    return {}

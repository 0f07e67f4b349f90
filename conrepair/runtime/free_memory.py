"""How much memory workers may hold together, and what each of them holds."""

from __future__ import annotations

import contextlib
from pathlib import Path

__all__ = ["free_for_jobs", "held_alone"]

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


def _numbers(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    with contextlib.suppress(OSError):
        rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
        return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}
    return {}

"""Which file of tests a worker gets next: the one that costs most, so that at the end no core waits for another.

Files stay whole (`--dist loadfile`): what a module makes once is made once. What they cost is kept in `seconds.json`,
measured by `make test` and written by `make seconds`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from durations import FILES

__all__ = ["KEPT", "longest_first", "seconds_of"]

KEPT = Path(__file__).with_name("seconds.json")
"""Processor seconds by file, longest first; those that cost less than `LEAST` aren't listed."""

LEAST = 3.0


def seconds_of(path: Path) -> dict[str, float]:
    """What's known of files, by their path from the repository's root."""
    known: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    return known


def longest_first(items: list[pytest.Item], known: Mapping[str, float]) -> None:
    """Sort tests by what their file costs; those of one file, and of unknown files, stay in their order."""
    items.sort(key=lambda item: -known.get(item.nodeid.split("::")[0], 0.0))


def main() -> None:
    """Keep what the last run measured; a file that it didn't run keeps its seconds, one that's gone loses them."""
    root = KEPT.parents[2]
    measured: dict[str, float] = json.loads((root / ".pytest_cache/d/durations" / FILES).read_text(encoding="utf-8"))
    new = {name: round(seconds, 1) for name, seconds in (seconds_of(KEPT) | measured).items()}
    kept = {name: seconds for name, seconds in new.items() if seconds >= LEAST and (root / name).is_file()}
    ordered = dict(sorted(kept.items(), key=lambda item: -item[1]))
    KEPT.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{KEPT.relative_to(root)}: {len(ordered)} files, {sum(ordered.values()):.0f} s\n")


if __name__ == "__main__":
    main()

"""Which file of tests a worker gets next: the one that costs most, so that at the end no core waits for another.

Files stay whole (`--dist loadfile`): what a module makes once is made once. What they cost is kept in `seconds.json`,
measured by `make test` and `make test-real`, and written by `make seconds`. A file that isn't there yet comes first:
it may cost much.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from durations import FILES

__all__ = ["FOLDERS", "KEPT", "files", "longest_first", "seconds_of"]

KEPT = Path(__file__).with_name("seconds.json")
"""Processor seconds of each file of tests, longest first."""


FOLDERS = ("tests", "tests_real")


def files(root: Path) -> set[str]:
    """Names of the files of tests that are dealt.

    Args:
        root: Of the repository.
    """
    return {path.relative_to(root).as_posix() for name in FOLDERS for path in (root / name).rglob("test_*.py")}


def seconds_of(path: Path) -> dict[str, float]:
    """What's known of files, by their path from the repository's root."""
    known: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    return known


def longest_first(items: list[pytest.Item], known: Mapping[str, float]) -> None:
    """Sort tests by what their file costs, unknown files first; those of one file stay in their order."""
    items.sort(key=lambda item: -known.get(item.nodeid.split("::")[0], float("inf")))


def main() -> None:
    """Keep what runs measured; a file that wasn't run keeps its seconds, one that's gone loses them."""
    root = KEPT.parents[2]
    measured: dict[str, float] = json.loads((root / ".pytest_cache/d/durations" / FILES).read_text(encoding="utf-8"))
    new = {name: round(seconds, 1) for name, seconds in (seconds_of(KEPT) | measured).items()}
    kept = {name: seconds for name, seconds in new.items() if name in files(root)}
    ordered = dict(sorted(kept.items(), key=lambda item: -item[1]))
    KEPT.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{KEPT.relative_to(root)}: {len(ordered)} files, {sum(ordered.values()):.0f} s\n")


if __name__ == "__main__":
    main()

"""What became of the older tool's conversions, and the file that keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.files.whole import whole_output

__all__ = ["OlderRow", "read_older", "write_older"]


@dataclass(frozen=True)
class OlderRow:
    """What became of a case.

    Attributes:
        name: Of the case.
        status: "measured", or "failed".
        words: Why it failed.
        photos: How many.
        classes: How many classes the source answers on these photos.
        before: Share of photos whose best class differs.
        after: The same for what came out.
        found: Kinds of the faults that were found.
        recipe: What the recipe that the repair set does otherwise, in words; none where it set none.
        edits: Of the target's file, in words.
        left: Kinds of the faults that the repair leaves.
        seconds: Of the first audit.
        injected: What is wrong with the target, in words.
    """

    name: str
    status: str
    words: str = ""
    photos: int = 0
    classes: int = 0
    before: float | None = None
    after: float | None = None
    found: tuple[str, ...] = ()
    recipe: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    seconds: float = 0.0
    injected: str = ""


def read_older(path: Path) -> tuple[dict[str, Any], list[OlderRow]]:
    """What `write_older` wrote: what the run was of, and its rows."""
    content = json.loads(path.read_text(encoding="utf-8"))
    rows = content.pop("older")
    return content, [
        OlderRow(**{name: tuple(item) if isinstance(item, list) else item for name, item in row.items()})
        for row in rows
    ]


def write_older(path: Path, about: Mapping[str, Any], rows: Sequence[OlderRow]) -> None:
    """Write all rows: the file appears whole, or stays as it was."""
    content = {**about, "older": [asdict(row) for row in rows]}
    with whole_output(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")

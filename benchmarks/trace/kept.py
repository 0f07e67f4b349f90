"""Rows that are kept as they come, below what made them: the next run goes on from there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.common.measured import made_by

__all__ = ["Kept"]


class Kept:
    """A file of rows.

    Attributes:
        about: The commands that made them.
        rows: All that are known.
    """

    def __init__(self, path: Path, command: str = "") -> None:
        """Read what's there.

        Args:
            path: Of the file; it needn't exist.
            command: That adds rows; the words that were typed behind it follow, but for the folder.
        """
        items = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
        self._path, self.about = path, [item for item in items if isinstance(item, str)]
        self.rows: list[dict[str, Any]] = [item for item in items if isinstance(item, dict)]
        if command:
            path.parent.mkdir(parents=True, exist_ok=True)
            words = " ".join([command, *sys.argv[1:]]).replace(f" --folder {path.parent}", "")
            if (line := made_by(words)) not in self.about:
                self._write([line])
                self.about.append(line)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Keep rows, all at once."""
        new = [dict(row) for row in rows]
        self.rows += new
        self._write(new)

    def known(self, **values: Any) -> bool:
        """Whether there's a row with these values."""
        return any(all(row.get(name) == value for name, value in values.items()) for row in self.rows)

    def _write(self, items: Iterable[Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(item) + "\n" for item in items))

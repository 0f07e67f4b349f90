"""A baseline: what is known to be wrong, as a JSON list that people edit and share; it makes no command fail."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeVar

import pydantic

from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.runtime.files.whole import write_text

NO_REASON = "no reason given yet"
"""What a command writes for `where`, for a person to replace."""


class Known(pydantic.BaseModel):
    """Something that is known; what an entry doesn't say may be anything.

    Attributes:
        where: Why it's accepted: an address, or words.
    """

    model_config = pydantic.ConfigDict(extra="forbid", strict=True)

    where: Annotated[str, pydantic.Field(min_length=1)]


K = TypeVar("K", bound=Known)


def read_baseline(path: Path, kind: type[K]) -> tuple[K, ...]:
    """Read a list.

    Args:
        path: A JSON array of objects.
        kind: Of its entries.

    Raises:
        UsageError: if it's none.
    """
    try:
        return tuple(pydantic.TypeAdapter(list[kind]).validate_python(value_of(read_json_text(path))))  # type: ignore[valid-type]
    except (OSError, ValueError, re.error) as error:
        keys = ", ".join(kind.model_fields)
        raise UsageError(
            f"{path} is no baseline: {error}. It's a JSON array of objects with any of {keys} (docs/report.md). "
            "--update-baseline writes one."
        ) from error


def named(path: str | Path | None) -> Path:
    """The file that is to be written.

    Raises:
        UsageError: if nobody named one.
    """
    if path is None:
        raise UsageError("--update-baseline writes the file of --baseline FILE: name it.")
    return Path(path)


def write_baseline(path: Path, known: Iterable[Known]) -> None:
    """Write a list whole, an entry a line, so that changes of it can be read.

    Args:
        path: Its file.
        known: Its entries.

    Raises:
        StorageError: if it can't be written.
    """
    lines = [json.dumps(item.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False) for item in known]
    write_text(path, "[\n" + ",\n".join(f"  {line}" for line in lines) + "\n]\n")

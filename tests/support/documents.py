"""What result.json says, as JSON values."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema

from conrepair.application.report.saved import DOCUMENT, read_result
from conrepair.application.report.schema import Document

__all__ = ["document", "localization_in", "localized_in", "repair_in", "rows_in", "validator"]


@functools.cache
def validator(document: Document) -> jsonschema.Draft202012Validator:
    """What documents of a kind are held to; `jsonschema.validate` looks at the schema itself each time."""
    schema = document.schema
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def document(folder: Path | str) -> dict[str, Any]:
    """All of it."""
    value: dict[str, Any] = json.loads((Path(folder) / DOCUMENT).read_text(encoding="utf-8"))
    return value


def rows_in(folder: Path | str) -> list[dict[str, Any]]:
    """All models in all places, each with the `name` that it has in an audit."""
    rows: list[dict[str, Any]] = document(folder)["rows"]
    return [row | {"name": f"{row['model']}/{row['conversion'] or 'source'}"} for row in rows]


def localized_in(row: dict[str, Any]) -> dict[str, Any]:
    """The localization that explains a row."""
    localized = row["localized"]
    found: dict[str, Any] = localized["steps"][localized["explaining"]]["localization"]
    return found


def localization_in(folder: Path | str) -> dict[str, Any]:
    """That of the last row."""
    return localized_in(document(folder)["rows"][-1])


def repair_in(folder: Path | str, place: int = -1) -> dict[str, Any]:
    """A row's repair, with its advice and whether the target is repaired."""
    row, known = document(folder)["rows"][place], read_result(folder).rows[place].repaired.result
    assert known is not None
    found: dict[str, Any] = row["repaired"]["result"]
    return found | {"advice": row["repaired"]["advice"], "mended": known.mended}

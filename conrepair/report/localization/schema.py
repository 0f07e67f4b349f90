"""Write the JSON Schema: `python -m conrepair.report.localization.schema` (a test keeps the file true)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conrepair.report.localization.document import LocalizationDocument

__all__ = ["SCHEMA_PATH", "localization_schema", "schema_text"]

SCHEMA_PATH = Path(__file__).with_name("localization.schema.json")


def localization_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of localization.json."""
    schema = LocalizationDocument.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema


def schema_text() -> str:
    """What the file holds."""
    return json.dumps(localization_schema(), indent=2) + "\n"


def main() -> None:
    """Rewrite localization.schema.json beside this file."""
    SCHEMA_PATH.write_text(schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()

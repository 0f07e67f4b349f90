"""Write the JSON Schema: `python -m conrepair.application.config.schema` (a test keeps the file true)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conrepair.application.config.model import AuditConfig
from conrepair.application.config.parts import PARTS

SCHEMA_PATH = Path(__file__).with_name("schema.json")


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a configuration file."""
    schema = AuditConfig.with_parts(PARTS).model_json_schema(by_alias=True, mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema


def main() -> None:
    """Rewrite schema.json beside this file."""
    SCHEMA_PATH.write_text(json.dumps(json_schema(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Write the JSON Schema of result.json: `python -m conrepair.application.report.schema` (a test compares)."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from conrepair.application.report.result import AuditResult
from conrepair.application.report.saved import SCHEMA_VERSION
from conrepair.ground.runtime.errors import ExitCode

_ATTRIBUTE = re.compile(r"^    (\w+): ", re.MULTILINE)


class _OfValues(GenerateJsonSchema):
    """Of dataclasses as `encode` writes them: nothing besides the fields, described as their docstrings do."""

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        return {"anyOf": [super().float_schema(schema), {"enum": ["inf", "-inf", "nan"]}]}

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        found = super().dataclass_schema(schema)
        text = inspect.cleandoc(schema["cls"].__doc__ or "")
        summary, _, attributes = text.partition("\n\nAttributes:\n")
        parts = _ATTRIBUTE.split(attributes.partition("\n\n")[0])
        words = {name: " ".join(said.split()) for name, said in zip(parts[1::2], parts[2::2], strict=True)}
        properties = found.get("properties", {})
        for name in properties:
            if name in words:  # what stands beside a reference is kept from being lost in it
                properties[name] = {**properties[name], "description": words[name]}
        return found | {"description": summary, "required": list(properties), "additionalProperties": False}


_STEP = {"properties": {key: {"type": "string"} for key in ("command", "why")}, "required": ["command", "why"]}


@dataclass(frozen=True)
class Document:
    """What a command writes as JSON.

    Attributes:
        path: Where its schema is kept.
        kind: The type that it's written of.
        more: Fields in front of the type's own.
    """

    path: Path
    kind: Any
    more: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema (draft 2020-12)."""
        found = pydantic.TypeAdapter(self.kind).json_schema(mode="serialization", schema_generator=_OfValues)
        if self.more:
            found |= {"properties": self.more | found["properties"], "required": [*self.more, *found["required"]]}
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}

    @property
    def text(self) -> str:
        """What the schema's file holds."""
        return json.dumps(self.schema, indent=2) + "\n"


RESULT = Document(
    Path(__file__).with_name("result.schema.json"),
    AuditResult,
    {
        "schema_version": {"const": SCHEMA_VERSION, "description": "Of this form; another one is refused."},
        "exit_code": {"enum": [int(code) for code in ExitCode], "description": "That of the command."},
        "next": {
            "type": "array",
            "description": 'What to do, in order: a command, or "" where none does it, and why.',
            "items": {"type": "object", "additionalProperties": False, **_STEP},
        },
    },
)
"""`result.json`."""

if __name__ == "__main__":
    RESULT.path.write_text(RESULT.text, encoding="utf-8")

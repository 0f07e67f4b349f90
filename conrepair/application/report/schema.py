"""Write the JSON Schemas of what commands write: `python -m conrepair.application.report.schema` (tests compare)."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from conrepair.application.report.fuzz.summary import Summary
from conrepair.application.report.result import AuditResult
from conrepair.application.report.saved import SCHEMA_VERSION
from conrepair.application.report.tracing.folder import VERSION as TRACE_VERSION
from conrepair.ground.runtime.errors import ExitCode
from conrepair.laboratory.accuracy.measured import Measured
from conrepair.laboratory.fuzz.finding import VERSION as FUZZ_VERSION
from conrepair.laboratory.fuzz.finding import Finding
from conrepair.laboratory.tracing.result import Traced

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
_OF_FUZZ = {"schema_version": {"const": FUZZ_VERSION, "description": "Of this form."}}
_DOCUMENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "finding": (Finding, _OF_FUZZ),
    "findings": (Summary, _OF_FUZZ),
    "trace": (
        Traced,
        {
            "schema_version": {"const": TRACE_VERSION, "description": "Of this form."},
            "verdict": {"type": "string", "description": "One sentence."},
            "exit_code": {"enum": [0, 1], "description": "That of the command."},
        },
    ),
    "accuracy": (list[Measured], {}),
    "result": (
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
    ),
}  # by name: what is written, and fields in front of its own


def schema_path(name: str) -> Path:
    """Where the schema of a document is kept.

    Args:
        name: Of the document, without its suffix: "result" of result.json.
    """
    return Path(__file__).with_name(f"{name}.schema.json")


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a document."""
    kind, own = _DOCUMENTS[name]
    found = pydantic.TypeAdapter(kind).json_schema(mode="serialization", schema_generator=_OfValues)
    if own:
        found |= {"properties": own | found["properties"], "required": [*own, *found["required"]]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def schema_text(name: str) -> str:
    """What the schema's file holds."""
    return json.dumps(schema_of(name), indent=2) + "\n"


if __name__ == "__main__":
    for document in _DOCUMENTS:
        schema_path(document).write_text(schema_text(document), encoding="utf-8")

"""Write the JSON Schemas of what commands write: `python -m conrepair.report.schema` (tests compare)."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from conrepair.accuracy.measured import Measured
from conrepair.fuzz.finding import VERSION as FUZZ_VERSION
from conrepair.fuzz.finding import Finding
from conrepair.report.fuzz.summary import Summary
from conrepair.report.result import AuditResult
from conrepair.report.saved import SCHEMA_VERSION
from conrepair.report.tracing.folder import VERSION as TRACE_VERSION
from conrepair.runtime.errors import ExitCode
from conrepair.tracing.result import Traced

__all__ = [
    "ACCURACY_PATH",
    "CAMPAIGN_PATH",
    "FINDING_PATH",
    "SCHEMA_PATH",
    "TRACE_PATH",
    "accuracy_schema",
    "campaign_schema",
    "finding_schema",
    "result_schema",
    "schema_text",
    "trace_schema",
]

SCHEMA_PATH = Path(__file__).with_name("result.schema.json")
ACCURACY_PATH = Path(__file__).with_name("accuracy.schema.json")
CAMPAIGN_PATH = Path(__file__).with_name("findings.schema.json")
FINDING_PATH = Path(__file__).with_name("finding.schema.json")
TRACE_PATH = Path(__file__).with_name("trace.schema.json")
_ATTRIBUTE = re.compile(r"^    (\w+): ", re.MULTILINE)


class _OfValues(GenerateJsonSchema):
    """Of dataclasses as `encode` writes them: nothing besides the fields, described as their docstrings do."""

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        return {"anyOf": [super().float_schema(schema), {"enum": ["inf", "-inf", "nan"]}]}

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        found = super().dataclass_schema(schema)
        text = inspect.cleandoc(schema["cls"].__doc__ or "")
        summary, _, attributes = text.partition("\n\nAttributes:\n")
        words = _descriptions(attributes.partition("\n\n")[0])
        properties = found.get("properties", {})
        for name in properties:
            if name in words:  # what stands beside a reference is kept from being lost in it
                inner = properties[name]
                properties[name] = {**inner, "description": words[name]}
        return found | {"description": summary, "required": list(properties), "additionalProperties": False}


def _descriptions(text: str) -> dict[str, str]:
    """What a docstring says of each attribute."""
    parts = _ATTRIBUTE.split(text)
    return {name: " ".join(words.split()) for name, words in zip(parts[1::2], parts[2::2], strict=True)}


def result_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of result.json."""
    own = {
        "schema_version": {"const": SCHEMA_VERSION, "description": "Of this form; another one is refused."},
        "exit_code": {"enum": [int(code) for code in ExitCode], "description": "That of the command."},
    }
    return _document(AuditResult, own)


def accuracy_schema() -> dict[str, Any]:
    """The JSON Schema of accuracy.json, which `conrepair accuracy` writes."""
    adapter: pydantic.TypeAdapter[list[Measured]] = pydantic.TypeAdapter(list[Measured])
    found = adapter.json_schema(mode="serialization", schema_generator=_OfValues)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def trace_schema() -> dict[str, Any]:
    """The JSON Schema of trace.json, which `conrepair trace` writes."""
    own = {
        "schema_version": {"const": TRACE_VERSION, "description": "Of this form."},
        "verdict": {"type": "string", "description": "One sentence."},
        "exit_code": {"enum": [0, 1], "description": "That of the command."},
    }
    return _document(Traced, own)


def finding_schema() -> dict[str, Any]:
    """The JSON Schema of finding.json, which `conrepair fuzz` writes of each finding."""
    return _of_fuzz(Finding)


def campaign_schema() -> dict[str, Any]:
    """The JSON Schema of findings.json, which `conrepair fuzz` writes."""
    return _of_fuzz(Summary)


def _of_fuzz(kind: type[Any]) -> dict[str, Any]:
    return _document(kind, {"schema_version": {"const": FUZZ_VERSION, "description": "Of this form."}})


def _document(kind: type[Any], own: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value that is written with some fields in front of its own."""
    found = pydantic.TypeAdapter(kind).json_schema(mode="serialization", schema_generator=_OfValues)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **found,
        "properties": own | found["properties"],
        "required": [*own, *found["required"]],
    }


def schema_text(schema: dict[str, Any] | None = None) -> str:
    """What a file holds: that of result.json, or another schema."""
    return json.dumps(schema or result_schema(), indent=2) + "\n"


def main() -> None:
    """Rewrite the files beside this one."""
    FINDING_PATH.write_text(schema_text(finding_schema()), encoding="utf-8")
    CAMPAIGN_PATH.write_text(schema_text(campaign_schema()), encoding="utf-8")
    TRACE_PATH.write_text(schema_text(trace_schema()), encoding="utf-8")
    ACCURACY_PATH.write_text(schema_text(accuracy_schema()), encoding="utf-8")
    SCHEMA_PATH.write_text(schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()

"""schema.json says what the code accepts, and the shipped configuration is accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
from pydantic import BaseModel

from conrepair.application.config import model as models
from conrepair.application.config.load import parse_config, read_json
from conrepair.application.config.parts import PARTS
from conrepair.application.config.schema import SCHEMA_PATH, json_schema
from conrepair.formats.converters.routes import pinned_route
from conrepair.ground.zoo.catalog import MODELS
from conrepair_crowd import engine
from conrepair_lab import sections

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "config.json"


def test_the_file_is_in_step_with_the_code() -> None:
    assert json.loads(SCHEMA_PATH.read_text(encoding="utf-8")) == json_schema(), "run `make schema`"
    text = json.dumps(json_schema(), indent=2) + "\n"
    assert SCHEMA_PATH.read_text(encoding="utf-8") == text, "run `make schema`"


def test_it_names_its_draft() -> None:
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert next(iter(schema)) == "$schema"
    keys = [item["required"] for item in schema["anyOf"]]
    assert keys == [["models"], ["architectures"], ["fuzz"], ["generate"], ["trace"]]


def _objects(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"AuditConfig": schema} | schema["$defs"]


def test_every_key_of_the_code_is_in_it_and_no_other() -> None:
    kinds: dict[str, type[BaseModel]] = vars(models) | vars(sections) | vars(engine)
    kinds["AuditConfig"] = models.AuditConfig.with_parts(PARTS)
    for name, schema in _objects(json_schema()).items():
        kind = kinds[name]
        keys = {field.alias or key for key, field in kind.model_fields.items()}
        assert set(schema["properties"]) == keys
        if kind is not models.PluginConfig:  # whose options the plug-in knows
            assert schema["additionalProperties"] is False, f"{name}: editors must mark unknown keys, as we do"
        assert schema["description"]


def test_every_reference_in_it_leads_somewhere() -> None:
    schema = json_schema()
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                found.append(value["$ref"])
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(schema)
    assert found
    assert {reference.removeprefix("#/$defs/") for reference in found} == set(schema["$defs"])


def test_texts_in_place_of_objects_are_allowed_by_it() -> None:
    schema = json_schema()
    places = {
        "conversions": schema["$defs"]["ModelConfig"]["properties"]["conversions"]["items"],
        "recipe": schema["$defs"]["ModelConfig"]["properties"]["recipe"],
        "backends": schema["properties"]["backends"]["anyOf"][0]["items"],
    }
    for name, place in places.items():
        assert any(item.get("type") == "string" for item in place["anyOf"]), name


def test_the_shipped_configuration() -> None:
    config = parse_config(read_json(SHIPPED), "the file")
    assert config.schema_ is not None
    assert (ROOT / config.schema_).resolve() == SCHEMA_PATH.resolve(), "editors follow $schema"
    for model in config.models:
        if model.zoo is None:
            continue
        framework = "torch" if MODELS[model.zoo].factory else "tflite"
        for conversion in model.conversions:
            assert pinned_route(conversion.via or (), framework).steps
    assert all(not model.skip_analysis for model in config.models)


def test_the_shipped_configuration_by_a_validator_of_json_schema() -> None:
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(SHIPPED.read_text(encoding="utf-8")))

"""The reader and the JSON Schema agree: what editors mark is refused, and what they don't only by rules."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from schema_values import documents, spoiled

from conrepair.application.config.load import _first_causes
from conrepair.application.config.model import AuditConfig
from conrepair.application.config.parts import PARTS
from conrepair.application.config.schema import json_schema

SCHEMA = json_schema()
EDITOR = jsonschema.Draft202012Validator(SCHEMA)
RULES = {"rule", "value_error"}
"""What no JSON Schema says: names that differ or are known, ends of ranges, paths that can be."""


def refusals(value: Any) -> set[str]:
    try:
        AuditConfig.with_parts(PARTS).model_validate(json.loads(json.dumps(value)))
    except ValidationError as error:
        return {problem["type"] for problem in _first_causes(error.errors())}
    return set()


@st.composite
def configurations(draw: st.DrawFn) -> Any:
    whole = draw(documents(SCHEMA, SCHEMA))
    return draw(spoiled(whole)) if draw(st.booleans()) else whole


@given(configurations())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_reader_and_schema_agree(value: Any) -> None:
    refused = refusals(value)
    if EDITOR.is_valid(value):
        assert refused <= RULES, "the schema accepts what the reader has no rule against"
    else:
        assert refused, "the reader accepts what the schema refuses"


@pytest.mark.parametrize(
    ("key", "right", "wrong"),
    [
        ("batch_size", [16, 16.0], ["16", True, 1.5, None]),
        ("keep_models", [True, False], ["yes", "true", 1, 0]),
        ("tolerance", [{"rtol": 1}, {"rtol": 0.5}], [{"rtol": "0.5"}, {"rtol": True}]),
        ("limits", [{"seconds": 5}], [{"seconds": "5"}, {"seconds": False}]),
        ("schema_version", [1, 1.0], ["1", True]),
    ],
)
def test_values_of_another_sort(key: str, right: list[Any], wrong: list[Any]) -> None:
    least = {"models": [{"name": "a", "path": "a.onnx"}]}
    for items, accepted in ((right, True), (wrong, False)):
        for value in [least | {key: item} for item in items]:
            assert (EDITOR.is_valid(value), not refusals(value)) == (accepted, accepted), value

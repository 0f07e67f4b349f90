"""localization.json and layers.csv."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import localizations
import pydantic
import pytest

import conrepair
from conrepair.data.named_recipes import named_recipe
from conrepair.localization.recipe_found import RecipeFinding
from conrepair.localization.result import LayerRow, Localization, LocatedFault
from conrepair.localization.suspicion_draws import SuspicionSettings
from conrepair.localization.suspiciousness import ElementTest, LayerSuspicion, Suspiciousness
from conrepair.report.localization.document import LocalizationDocument, localization_document
from conrepair.report.localization.schema import SCHEMA_PATH, localization_schema, schema_text
from conrepair.report.localization.table import layers_csv


def text_of(result: Localization) -> str:
    return localization_document(result, localizations.about()).model_dump_json()


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} isn't JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_schema_file_is_in_step_with_the_code() -> None:
    assert SCHEMA_PATH.read_text(encoding="utf-8") == schema_text(), "run `make schema`"
    jsonschema.Draft202012Validator.check_schema(localization_schema())


def test_a_real_localization_is_valid_and_names_the_layer(tmp_path: Path) -> None:
    result, about = localizations.wrong_pads(tmp_path)
    document = strict(localization_document(result, about).model_dump_json())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text(encoding="utf-8")))
    assert document["verdict"] == "faulty"
    assert document["faults"][0]["kind"] == "hyperparameters"
    assert document["faults"][0]["target_layers"][0] == "conv"
    assert document["faults"][0]["introduced_error"] > 1000 * document["faults"][0]["noise_floor"]
    assert (document["source"]["format"], document["source"]["sha256"]) == ("onnx", about.source.sha256)
    assert document["versions"]["conrepair"] == conrepair.__version__


def test_every_field_of_the_result_is_in_it() -> None:
    document = strict(text_of(localizations.made(5, {2: 0.5})))
    for kind, value in (
        (Localization, document),
        (LocatedFault, document["faults"][0]),
        (LayerRow, document["layers"][0]),
    ):
        assert {field.name for field in dataclasses.fields(kind)} - {"graphs"} <= value.keys()
    assert [row["order"] for row in document["layers"]] == [0, 1, 2, 3, 4]
    assert document["options"] == {
        "samples": 8, "batch_size": 4, "noise_margin": 10.0, "equivalent": 1e-4, "precision": "float32",
        "quantized": False, "drawn": False, "seed": 7, "recipe_runs": 300, "recipe_seconds": 60.0,
        "suspiciousness": None, "rtol": None, "atol": None,
        "latent": True, "latent_counts": False, "quantized_top1": 0.25, "quantized_cosine": 0.9,
    }  # fmt: skip


def test_recipe_and_ranking_are_in_it_when_there_are_any() -> None:
    settings = SuspicionSettings(seed=4)
    suspects = tuple(
        LayerSuspicion(name, name, (ElementTest(10, count, 0, count),), (float(rank),), math.nan)
        for rank, (name, count) in enumerate([("guilty", 9), ("innocent", 0)], 1)
    )
    ranking = Suspiciousness(suspects, (), 20, 17, settings, None)
    recipe = RecipeFinding(
        recipe=dataclasses.asdict(named_recipe("torchvision")),
        arrangement="as it is",
        found=True,
        changes=("RGB instead of BGR",),
        error=1e-6,
        error_before=0.5,
        photos=8,
        runs=12,
        complete=True,
        evidence="RGB instead of BGR",
    )
    document = strict(text_of(localizations.made(2, {1: 0.5}, suspiciousness=ranking, recipe=recipe)))
    jsonschema.validate(document, localization_schema())
    assert [layer["target_layer"] for layer in document["suspiciousness"]["layers"]] == ["guilty", "innocent"]
    assert document["suspiciousness"]["layers"][0]["params_mean_diff"] == "nan"
    assert document["suspiciousness"]["settings"]["seed"] == 4
    assert document["recipe"]["recipe"]["mean"] == [0.485, 0.456, 0.406]


def test_numbers_that_json_lacks() -> None:
    broken = localizations.row(0, math.inf, introduced_cosine=math.nan, full_run_norm_ratio=-math.inf)
    result = dataclasses.replace(localizations.made(1), layers=(broken,), output_error=math.inf)
    document = strict(text_of(result))
    jsonschema.validate(document, localization_schema())
    layer = document["layers"][0]
    assert (layer["introduced_error"], layer["introduced_cosine"]) == ("inf", "nan")
    assert (layer["full_run_norm_ratio"], document["output_error"]) == ("-inf", "inf")
    again = LocalizationDocument.model_validate_json(json.dumps(document))
    assert again.layers[0].introduced_error == "inf"


@pytest.mark.parametrize(
    "change",
    [{"verdict": "fine"}, {"output_error": "large"}, {"more": 1}, {"schema_version": 2}, {"samples": -1}],
    ids=str,
)
def test_other_documents_are_refused(change: dict[str, Any]) -> None:
    document = json.loads(text_of(localizations.made(2, {1: 0.5})))
    jsonschema.validate(document, localization_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document | change, localization_schema())
    with pytest.raises(pydantic.ValidationError):
        LocalizationDocument.model_validate(document | change)


def test_the_table_has_every_row_in_the_sources_order() -> None:
    result = localizations.made(7, {3: math.inf, 5: 0.25})
    result = localizations.with_names(result, 'a "name", with\nall', [5])
    lines = list(csv.DictReader(io.StringIO(layers_csv(result.layers))))
    rows = sorted(result.layers, key=lambda row: row.order)
    assert len(lines) == len(rows) == 7
    for line, row in zip(lines, rows, strict=True):
        assert line.keys() == {field.name for field in dataclasses.fields(LayerRow)} - {
            "source_nodes",
            "target_nodes",
        }
        assert (line["source_layer"], line["target_tensor"]) == (row.source_layer, row.target_tensor)
        assert float(line["introduced_error"]) == row.introduced_error
        assert line["guilty"] == ("true" if row.guilty else "false")

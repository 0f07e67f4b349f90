"""layers.csv."""

from __future__ import annotations

import csv
import dataclasses
import io
import math

import localizations

from conrepair.application.report.localization.texts import layers_csv
from conrepair.diagnosis.localization.result import LayerRow


def test_the_table_has_every_row_in_the_sources_order() -> None:
    result = localizations.made(7, {3: math.inf, 5: 0.25})
    result = localizations.with_names(result, 'a "name", with\nall', [5])
    lines = list(csv.DictReader(io.StringIO(layers_csv(result.layers))))
    rows = sorted(result.layers, key=lambda row: row.order)
    assert len(lines) == len(rows) == 7
    for line, row in zip(lines, rows, strict=True):
        fields = {field.name for field in dataclasses.fields(LayerRow)} - {"source_nodes", "target_nodes"}
        assert line.keys() == fields | {"introduced_sqnr_db", "full_run_sqnr_db"}
        assert (line["source_layer"], line["target_tensor"]) == (row.source_layer, row.target_tensor)
        assert float(line["introduced_error"]) == row.introduced_error
        assert line["guilty"] == ("true" if row.guilty else "false")

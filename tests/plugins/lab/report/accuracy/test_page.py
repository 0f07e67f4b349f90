"""The page, the table and the picture of operators' errors."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import jsonschema
from rich.console import Console

from conrepair_lab.accuracy.measured import Measured
from conrepair_lab.report.accuracy.page import (
    accuracy_plot,
    cause_lines,
    causes,
    json_text,
    page,
    terminal_table,
)
from conrepair_lab.report.schema import ACCURACY_DOCUMENT

TANH = Measured(
    "tvm-O0",
    "float32",
    "Tanh",
    "unary",
    values=1000,
    ulps=1.7e7,
    relative=1.0,
    at="1e-08",
    above=90,
    region="|x| < 0.014",
    form="tanh by (e^2x - 1) / (e^2x + 1): loses its digits for tiny x",
    specials=("0 loses its sign at -0",),
)
RESULTS = [
    TANH,
    replace(TANH, system="other", ulps=3e6),
    Measured("torch", "float32", "Tanh", "unary", values=1000, ulps=0.52, at="1"),
    Measured("torch", "float16", "Mean", "binary", missing=3, missing_region="|a| > 3e+4", form="a + b"),
    Measured("tvm-O0", "float32", "Celu", "unary", refused="not supported: Celu"),
]


def test_causes_join_systems_with_the_same_form() -> None:
    (mean, tanh) = sorted(causes(RESULTS), key=lambda cause: cause.worst.operator)
    assert tanh.worst is TANH
    assert tanh.columns == (("tvm-O0", "float32"), ("other", "float32"))
    assert mean.columns == (("torch", "float16"),)


def test_the_page_says_what_is_known() -> None:
    text = page(RESULTS, "Made by hand.", {"torch": 3.2})
    assert "Made by hand." in text
    assert "3 operators, 3 systems, 2 causes of errors above 16 ulps, 2 of them with the formula." in text
    assert "| Tanh | **2e+07** | **3e+06** | 0.5 |" in text
    assert "NaN or infinity: |a| \\> 3e+4".replace("|", "\\|") in text
    assert "- tvm-O0: Celu" in text
    assert "| Tanh | 0 loses its sign at -0 | tvm-O0, other |" in text
    assert text.endswith("Seconds: torch 3.\n")


def test_a_terminal_has_the_causes_of_the_largest_errors() -> None:
    assert list(cause_lines(RESULTS)) == [
        "Tanh in tvm-O0, other: up to 2e+07 ulps (100 %) at input 1e-08; range: |x| < 0.014; cause: tanh by "
        "(e^2x - 1) / (e^2x + 1): loses its digits for tiny x",
        "Mean in torch float16: NaN or infinity; range: |a| > 3e+4; cause: a + b",
    ]
    many = list(cause_lines([replace(TANH, operator=f"Tanh {number}") for number in range(12)]))
    assert many[-1] == "and 2 more (-o FOLDER keeps all)"
    assert len(many) == 11


def test_the_picture_is_xml_with_a_field_for_each_result() -> None:
    tree = ET.fromstring(accuracy_plot(RESULTS))  # noqa: S314 (ours)
    fields = [item for item in tree.iter() if item.tag.endswith("rect")]
    assert len(fields) == 1 + len(RESULTS)
    assert "not supported: Celu" in accuracy_plot(RESULTS)


def test_the_json_is_as_its_schema_says() -> None:
    assert ACCURACY_DOCUMENT.path.read_text(encoding="utf-8") == ACCURACY_DOCUMENT.text, "run `make schema`"
    without_scale = replace(TANH, relative=float("inf"))
    jsonschema.validate(json.loads(json_text([*RESULTS, without_scale])), ACCURACY_DOCUMENT.schema)


def test_json_and_the_terminal_have_the_same_numbers() -> None:
    assert [one["ulps"] for one in json.loads(json_text(RESULTS))][:2] == [1.7e7, 3e6]
    console = Console(width=120, record=True, file=None)
    with console.capture() as shown:
        console.print(terminal_table(RESULTS))
    assert "2e+07" in shown.get()

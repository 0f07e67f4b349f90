"""Findings that are kept are whole, and the page has them all; their programs run in tests_found."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import jsonschema
import pytest

from benchmarks.fuzz.findings import FINDINGS, KNOWN, page
from conrepair.formats.onnx.load.file import nodes_of
from conrepair_lab.cases.case import read
from conrepair_lab.report.fuzz.folder import REPRODUCE, read_finding
from conrepair_lab.report.schema import FINDING_DOCUMENT, FINDINGS_DOCUMENT

_ROOT = Path(__file__).parents[1]
_FOLDERS = sorted(path.parent for path in FINDINGS.glob("*/finding.json"))


@pytest.mark.parametrize("folder", _FOLDERS, ids=lambda folder: folder.name)
def test_a_finding_is_whole(folder: Path) -> None:
    finding, case = read_finding(folder), read(folder)
    assert finding.name == folder.name
    assert finding.case == case.key
    assert [node.op_type for node in nodes_of(case.model.graph)] == list(finding.operators)
    jsonschema.validate(json.loads((folder / "finding.json").read_text(encoding="utf-8")), FINDING_DOCUMENT.schema)


@pytest.mark.parametrize("folder", _FOLDERS, ids=lambda folder: folder.name)
def test_a_finding_names_no_place_of_a_machine(folder: Path) -> None:
    texts = [path.read_bytes() for path in folder.iterdir()]
    packed = re.findall(rb'MODEL = """\n([\w+/=\n]+)\n"""', (folder / REPRODUCE).read_bytes())
    texts += [base64.b64decode(item) for item in packed]
    assert not any(re.search(rb"/(?:home|root|work|Users|tmp)/|site-packages", text) for text in texts)


def test_each_finding_is_there_once_and_noted() -> None:
    findings = [read_finding(folder) for folder in _FOLDERS]
    assert len({item.key for item in findings}) == len(findings)
    known = json.loads(KNOWN.read_text(encoding="utf-8"))
    assert {item["key"] for item in known if "key" in item} <= {item.key for item in findings}


def test_the_page_is_made_of_them() -> None:
    found = (_ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert found == page(), "run `python -m benchmarks.fuzz.findings > docs/findings.md`"


def test_the_schemas_are_those_of_the_values() -> None:
    assert FINDING_DOCUMENT.path.read_text(encoding="utf-8") == FINDING_DOCUMENT.text, "run `make schema`"
    assert FINDINGS_DOCUMENT.path.read_text(encoding="utf-8") == FINDINGS_DOCUMENT.text, "run `make schema`"

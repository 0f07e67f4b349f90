"""Write the JSON Schemas of what the laboratory writes: `python -m conrepair_lab.report.schema`."""

from __future__ import annotations

from pathlib import Path

from conrepair.application.report.schema import Document
from conrepair_lab.accuracy.measured import Measured
from conrepair_lab.fuzz.finding import VERSION, Finding
from conrepair_lab.report.fuzz.summary import Summary
from conrepair_lab.report.tracing.folder import VERSION as TRACE_VERSION
from conrepair_lab.tracing.result import Traced

_HERE = Path(__file__).parent
_OF_FUZZ = {"schema_version": {"const": VERSION, "description": "Of this form."}}

FINDING_DOCUMENT = Document(_HERE / "finding.schema.json", Finding, _OF_FUZZ)
FINDINGS_DOCUMENT = Document(_HERE / "findings.schema.json", Summary, _OF_FUZZ)
TRACE_DOCUMENT = Document(
    _HERE / "trace.schema.json",
    Traced,
    {
        "schema_version": {"const": TRACE_VERSION, "description": "Of this form."},
        "verdict": {"type": "string", "description": "One sentence."},
        "exit_code": {"enum": [0, 1], "description": "That of the command."},
    },
)
ACCURACY_DOCUMENT = Document(_HERE / "accuracy.schema.json", list[Measured])

if __name__ == "__main__":
    for document in (FINDING_DOCUMENT, FINDINGS_DOCUMENT, TRACE_DOCUMENT, ACCURACY_DOCUMENT):
        document.path.write_text(document.text, encoding="utf-8")

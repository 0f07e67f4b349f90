"""Findings as campaigns make them, without a campaign."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from pathlib import Path
from typing import Any

from fuzz_cases import compared_by_halves

from conrepair_lab.cases.case import Array, Case
from conrepair_lab.fuzz.cause import Cause
from conrepair_lab.fuzz.finding import Finding, key_of
from conrepair_lab.fuzz.looking import look, other_answers
from conrepair_lab.report.fuzz.folder import write_finding
from conrepair_lab.report.fuzz.reproducer import reproducer
from conrepair_lab.systems.registry import entry

_VERSIONS = {"onnxruntime": importlib.metadata.version("onnxruntime")}


def finding_of(case: Case, name: str, folder: Path, **changes: Any) -> Finding:
    """What a system does with a case as a finding; some of its fields may be said."""
    asked = entry(name)
    suspicion = changes.pop("suspicion", None) or look(case, asked.runs, asked.chosen, folder).suspicion
    assert suspicion is not None
    operators = tuple(node.op_type for node in case.model.graph.node)
    cause = changes.pop("cause", Cause(plainly=True, tries=1, exact=True))
    found = Finding(
        key=key_of(asked.system, suspicion, operators, cause),
        system=asked.system,
        setting=asked.setting,
        suspicion=suspicion,
        operators=operators,
        cause=cause,
        judges="ONNX's reference in float64 and torch-eager",
        blamed=asked.runs.blamed(asked.chosen, _VERSIONS),
        versions=_VERSIONS,
        case=case.key,
        source="seed 0, 1 nodes, number 0",
        tries=3,
        smallest=True,
    )
    return dataclasses.replace(found, **changes)


def comparing(folder: Path, **changes: Any) -> Finding:
    """The finding that whole numbers are compared by their lower halves."""
    return finding_of(compared_by_halves(), "ort-none", folder, **changes)


def written_finding(finding: Finding, case: Case, folder: Path, right: Array | None = None) -> Path:
    """Write a finding; the output is as ONNX Runtime has it."""
    asked = entry(finding.entry)
    network = Path(asked.runs.programmed(case.file(folder), asked.chosen, folder).path)
    if right is None and (answers := other_answers(case)) is not None:
        right = answers.get(finding.suspicion.output)
    return write_finding(finding, case, reproducer(finding, case, network, right), folder / "findings")

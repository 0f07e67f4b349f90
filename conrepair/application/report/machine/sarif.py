"""results.sarif: faults as code scanning shows them, SARIF 2.1.0."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conrepair.application.report.encode import encode
from conrepair.application.report.result import AuditResult
from conrepair.application.report.told import Finding, Outcome, Told, told_of
from conrepair.formats.models.model import Model
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.words import printable, shortened
from conrepair.verdicts.evaluate.verdict import Verdict

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NAME, _MESSAGE = 80, 1000
_LINES = {"error": "error", "warning": "warning", "note": "notice"}
_MEASURED = ("introduced_error", "full_run_error", "noise_floor", "confidence")
_RULES = {
    Kind.PREPROCESSING: "The inputs are preprocessed differently than for the original model.",
    Kind.INPUT: "The inputs are arranged differently than those of the original model.",
    Kind.STRUCTURE: "Values are arranged differently than in the original model.",
    Kind.PARAMETERS: "A layer has other weights than in the original model.",
    Kind.HYPERPARAMETERS: "A layer has other attributes than in the original model.",
    Kind.GRAPH: "Operators were lost, added or replaced, and compute something else.",
    Kind.PRECISION: "Types or scales lose more precision than was asked for.",
    Kind.COMPILATION: "A compiled kernel computes something else than the model.",
    Verdict.FAULTY: "The converted model gives other outputs than the original; no layer is named.",
    Verdict.UNDECIDED: "These inputs can't tell whether the converted model is right.",
    Verdict.UNDEPLOYABLE: "The converted model doesn't load or run where the original does.",
}


def sarif_text(result: AuditResult) -> str:
    """One result for each fault of each target; what passed all the same (a repair fixed it) is a note.

    Args:
        result: Of any verb, or of an audit.
    """
    targets = told_of(result)
    driver = {
        "name": "conrepair",
        "version": result.versions.get("conrepair", "0"),
        "rules": [{"id": str(kind), "shortDescription": {"text": words}} for kind, words in _RULES.items()],
    }
    failed = [target for target in targets if target.outcome in {Outcome.ERROR, Outcome.SKIPPED}]
    invocation = {
        "executionSuccessful": not any(target.outcome is Outcome.ERROR for target in failed),
        "exitCode": result.exit_code,
        "commandLine": printable(result.command),
        "toolExecutionNotifications": [_unseen(target) for target in failed],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "artifacts": _artifacts(targets),
        "results": [told for target in targets for told in _results(target)],
        "columnKind": "unicodeCodePoints",
    }
    value = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(encode(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def github_lines(result: AuditResult) -> list[str]:
    """What failed as GitHub's workflow commands: `::error file=...`, `::warning` where it can't be told.

    Of a target that fails for something new, what is known is a `::notice`.

    Args:
        result: Of any verb, or of an audit.
    """
    lines = []
    for target in told_of(result):
        shown = () if target.outcome is Outcome.PASSED else _results(target)
        found = [(_LINES[item["level"]], item["ruleId"], item["message"]) for item in shown]
        if target.outcome is Outcome.ERROR:
            found = [("error", target.word, _unseen(target)["message"])]
        model = target.row.ran.artifact
        file = target.name if model is None else os.path.relpath(model.path)
        for level, kind, message in found:
            told = f"file={_escaped(file, ':,')},title={_escaped(f'conrepair: {kind}', ':,')}"
            lines.append(f"::{level} {told}::{_escaped(message['text'])}")
    return lines


def _escaped(text: str, more: str = "") -> str:
    return printable(text.translate({ord(letter): f"%{ord(letter):02X}" for letter in f"%\r\n{more}"}))


def _results(target: Told) -> Iterator[dict[str, Any]]:
    if target.outcome in {Outcome.PASSED, Outcome.FAILED}:
        undecided = target.word == Verdict.UNDECIDED
        level = "note" if target.outcome is Outcome.PASSED else "warning" if undecided else "error"
        for finding in target.accused:
            yield _result(finding, target, "note" if finding.known else level)


def _result(finding: Finding, target: Told, level: str) -> dict[str, Any]:
    fault, known = finding.fault, f" (known: {finding.known})" if finding.known else ""
    more = f" and {len(finding.layers) - 1} other layers" if len(finding.layers) > 1 else ""
    words = f"{target.name} on {target.row.ran_by}: {finding.kind}{finding.where}{more}{known}: {finding.words}"
    location: dict[str, Any] = {}
    if target.row.ran.artifact is not None:
        # Code scanning wants a line of each result; a model's file has none.
        place = {"artifactLocation": {"uri": _uri(target.row.ran.artifact)}, "region": {"startLine": 1}}
        location["physicalLocation"] = place
    if finding.layers:
        location["logicalLocations"] = [
            {"name": shortened(layer, _NAME), "fullyQualifiedName": layer, "kind": "layer"}
            for layer in dict.fromkeys(finding.layers)
        ]
    what = "\0".join([target.row.name, target.row.backend, finding.kind, *finding.layers])
    return {
        "ruleId": finding.kind,
        "level": level,
        "message": {"text": shortened(words, _MESSAGE)},
        "locations": [location] if location else [],
        "partialFingerprints": {"place/v1": hashlib.sha256(what.encode(errors="backslashreplace")).hexdigest()},
        "properties": {} if fault is None else {name: float(getattr(fault, name)) for name in _MEASURED},
    }


def _unseen(target: Told) -> dict[str, Any]:
    """A target that couldn't be looked at."""
    level = "error" if target.outcome is Outcome.ERROR else "note"
    words = f"{target.name} on {target.row.ran_by}: {target.word}: {target.reason}"
    return {"level": level, "message": {"text": shortened(words, _MESSAGE)}}


def _artifacts(targets: list[Told]) -> list[dict[str, Any]]:
    models = {_uri(model): model for target in targets if (model := target.row.ran.artifact) is not None}
    return [
        {"location": {"uri": uri}, "hashes": {"sha-256": model.sha256}, "roles": ["analysisTarget"]}
        for uri, model in models.items()
    ]


def _uri(model: Model) -> str:
    return Path(model.path).absolute().as_uri()

"""Runs as results, made up: audits of any rows, and names that a program or a person might act on."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import localizations

from conrepair.application.report.result import AuditResult, Problem, Row
from conrepair.ground.runtime.files.listing import LIST
from conrepair.verdicts.evaluate.verdict import Verdict

OF_EVERY_RUN = {LIST, "junit.xml", "report.html", "result.json", "results.sarif", "summary.md"}
"""Files that every folder has whose run judged a target."""

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>]]><!--&amp;\"'`|*_[x](http://evil.example)"
    "@somebody #12 www.evil.example\n| a | b |\r\n# head\x00\x1b[31m\x0b\ufffe\udc80\u202e\u2028🦆$x$" + "n" * 10_000
)


def row(model: str = "net", verdict: Verdict | None = None, **changes: Any) -> Row:
    plain = Row(
        model=model, conversion="torch-onnx", backend="libraries", kind="target", verdict=verdict,
        reason="as it is", reference=model,
    )  # fmt: skip
    return dataclasses.replace(plain, **changes)


def audit(*rows: Row, folder: Path = Path("/nowhere/out"), **changes: Any) -> AuditResult:
    run = localizations.run_of(localizations.made(3), localizations.about(), folder)
    return dataclasses.replace(run, **({"rows": rows, "kind": "audit", "name": "release"} | changes))


def hostile(folder: Path = Path("/nowhere/out")) -> AuditResult:
    """Every name and every message is one that nothing should act on."""
    found = localizations.with_names(localizations.made(3, {1: 0.5}), HOSTILE, [0, 1, 2])
    faults = tuple(dataclasses.replace(fault, evidence=(HOSTILE,)) for fault in found.faults)
    found = dataclasses.replace(found, reason=HOSTILE, notes=(HOSTILE,), faults=faults)
    run = localizations.run_of(found, localizations.about(), folder)
    problem = Problem(message=HOSTILE, explanation=HOSTILE, last_words=HOSTILE)
    wrong = dataclasses.replace(run.rows[0], model=HOSTILE, reason=HOSTILE, verdict=Verdict.FAULTY)
    failed = row(HOSTILE, conversion=HOSTILE, backend=HOSTILE, problem=problem, reason=HOSTILE)
    changes = {"kind": "audit", "name": HOSTILE, "command": HOSTILE, "notes": (HOSTILE,)}
    return dataclasses.replace(run, rows=(wrong, failed, failed), **changes)

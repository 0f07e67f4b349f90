"""The page of findings: a row for each that is kept in tests_found/findings, as it was looked at by hand.

python -m benchmarks.fuzz.findings > docs/findings.md
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from conrepair.application.report.csv_text import plain
from conrepair.application.report.verdict_table import markdown_table
from conrepair_lab.fuzz.finding import Finding
from conrepair_lab.report.fuzz.folder import read_finding

FINDINGS = Path(__file__).parents[2] / "tests_found" / "findings"
NOTES = FINDINGS / "notes.json"
"""By finding: what was said of it by hand ("what"), and the thread that has it already ("thread")."""

_HEAD = """# Findings

What [campaigns](fuzz.md) found in the releases that requirements.txt pins, each looked at by hand: reduced, judged by
ONNX's reference in float64 and another implementation, and kept in
[tests_found/findings](../tests_found/findings) with the program that shows it, which `make test-found` runs. Made by
`python -m benchmarks.fuzz.findings`.
"""


def page() -> str:
    """The page, as Markdown."""
    notes = json.loads(NOTES.read_text(encoding="utf-8"))
    findings = sorted((read_finding(path.parent) for path in FINDINGS.glob("*/finding.json")), key=_order)
    silent = sum(item.suspicion.kind in {"numbers", "not finite", "shape", "type", "gradient"} for item in findings)
    nodes = sorted(len(item.operators) for item in findings)
    told = (
        f"{len(findings)} findings, {silent} of them silent: numbers, shapes or types that are wrong without a word. "
        f"Nodes in the median: {nodes[len(nodes) // 2] if nodes else 0}."
    )
    head = ["at fault", "seen by", "network", "what", "switches", "workaround", "thread"]
    rows = [_row(item, notes.get(item.name, {})) for item in findings]
    return "\n".join([_HEAD, told, "", *markdown_table(head, rows)]) + "\n"


def _order(finding: Finding) -> tuple[object, ...]:
    return next(iter(finding.blamed), ""), finding.system, finding.suspicion.kind, finding.name


def _row(finding: Finding, note: dict[str, str]) -> list[str]:
    cause = finding.cause
    switches = "; ".join(" + ".join(item) for item in cause.causes)
    if cause.plainly:
        switches = "none: so without optimizations, too"
    lines = " ".join(f"`{plain(line)}`" for line in cause.lines)
    blamed = ", ".join(f"{name} {version}" for name, version in finding.blamed.items())
    link = f"[{', '.join(finding.operators)}](../tests_found/findings/{finding.name}/issue.md)"
    also = ", ".join([finding.entry, *finding.also])
    return [
        plain(blamed),
        plain(also),
        link,
        plain(note.get("what") or _short(finding)),
        plain(switches),
        lines or note.get("workaround", ""),
        note.get("thread", "none found"),
    ]


def _short(finding: Finding) -> str:
    words = " ".join(finding.suspicion.message.split())
    return words if len(words) <= 160 else f"{words[:160]}..."


def main() -> None:
    """Print it."""
    sys.stdout.write(page())


if __name__ == "__main__":
    main()

"""The page of findings: those that are kept in tests_found/findings, as they were looked at by hand.

python -m benchmarks.fuzz.findings > docs/findings.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from conrepair_lab.fuzz.known import read_known
from conrepair_lab.report.fuzz.document import document
from conrepair_lab.report.fuzz.folder import read_finding

FINDINGS = Path(__file__).parents[2] / "tests_found" / "findings"
KNOWN = FINDINGS / "known.json"
"""What was said of them by hand, and the threads that have them, or what was searched: `--baseline` takes it."""

_HEAD = """# Findings

What [campaigns](fuzz.md) found in the releases that requirements.txt pins, each looked at by hand: reduced, judged by
ONNX's reference in float64 and another implementation, and kept in
[tests_found/findings](../tests_found/findings) with the program that shows it, which `make test-found` runs. Made by
`python -m benchmarks.fuzz.findings`.
"""


def page() -> str:
    """The page, as Markdown."""
    findings = [read_finding(path.parent) for path in sorted(FINDINGS.glob("*/finding.json"))]
    nodes = sorted(len(item.operators) for item in findings)
    told = f"Nodes in the median: {nodes[len(nodes) // 2]}." if nodes else ""
    return f"{_HEAD}\n{told}\n\n{document(findings, read_known(KNOWN), '../tests_found/findings')}"


def main() -> None:
    """Print it."""
    sys.stdout.write(page())


if __name__ == "__main__":
    main()

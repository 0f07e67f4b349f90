"""What campaigns found is still so with the releases in which it was found: each program is run.

Nothing that's changed here breaks them, but other releases do: `make test-found` runs them once a week.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fuzz.findings import FINDINGS
from conrepair_lab.fuzz.finding import Finding
from conrepair_lab.report.fuzz.folder import REPRODUCE, read_finding

_FOLDERS = sorted(path.parent for path in FINDINGS.glob("*/finding.json"))


def installed(finding: Finding) -> bool:
    """Whether the libraries at fault are here in the releases in which it was seen."""
    try:
        return all(importlib.metadata.version(name) == version for name, version in finding.blamed.items())
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.mark.parametrize("folder", _FOLDERS, ids=lambda folder: folder.name)
def test_a_findings_program_shows_it(folder: Path, tmp_path: Path) -> None:
    finding = read_finding(folder)
    if not installed(finding):
        pytest.skip(f"other releases than {dict(finding.blamed)} are installed")
    command = [sys.executable, str(folder / REPRODUCE)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    if finding.suspicion.kind == "crash":
        assert found.returncode < 0, found.stdout + found.stderr
    else:
        assert found.returncode == 1, found.stdout + found.stderr
        assert "Traceback" not in found.stderr

"""Projects of examples/, as their users run them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conrepair.report.saved import read_result

ROOT = Path(__file__).resolve().parents[1]


def run_pytest(project: Path) -> subprocess.CompletedProcess[str]:
    # Where the project's own installation isn't this one, the plugin's entry point isn't, either.
    words = ["-q", "-p", "conrepair.pytest_plugin", "-p", "no:cacheprovider", "--conrepair-reports", "reports"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", *words, "--rootdir", "."]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.cpu_seconds(20)
def test_a_project_that_tests_its_export(tmp_path: Path) -> None:
    project = shutil.copytree(ROOT / "examples" / "tested_export", tmp_path / "project")
    done = run_pytest(project)
    assert done.returncode == 0, done.stdout
    assert not (project / "reports").exists()
    # An export of another network than the one that's used.
    text = (project / "export.py").read_text()
    (project / "export.py").write_text(text.replace("batch = ", "network[1].beta = 1\n    batch = "))
    test = (project / "test_export.py").read_text()
    swapped = test.replace("assert_equivalent(network,", "assert_equivalent(classifier(),")
    (project / "test_export.py").write_text(swapped)
    done = run_pytest(project)
    assert done.returncode == 1
    assert "faulty: " in done.stdout
    assert "Softplus" in done.stdout or "softplus" in done.stdout
    assert "report: " in done.stdout
    (row,) = read_result(project / "reports" / "test-the-export-is-right").rows[-1:]
    assert row.localized.result is not None
    assert row.localized.result.faults

"""Projects of examples/, as their users run them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from conrepair.application.cli.main import command_line
from conrepair.application.cli.parser import check_rest
from conrepair.application.report.saved import read_result

ROOT = Path(__file__).resolve().parents[1]


def run_pytest(project: Path) -> subprocess.CompletedProcess[str]:
    # Where the project's own installation isn't this one, the plugin's entry point isn't, either.
    words = ["-q", "-p", "conrepair.pytest_plugin", "-p", "no:cacheprovider", "--conrepair-reports", "reports"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", *words, "--rootdir", "."]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_a_project_that_tests_its_export(tmp_path: Path) -> None:
    """As it is, and beside it with an export of another network than the one that's used."""
    project = shutil.copytree(ROOT / "examples" / "tested_export", tmp_path / "project")
    text = (project / "export.py").read_text()
    (project / "wrong_export.py").write_text(text.replace("batch = ", "network[1].beta = 1\n    batch = "))
    test = (project / "test_export.py").read_text()
    for ours, theirs in {
        "from export import": "from wrong_export import",
        "assert_equivalent(network,": "assert_equivalent(classifier(),",
        "def test_the_export_is_right": "def test_another_export_is_wrong",
    }.items():
        assert ours in test
        test = test.replace(ours, theirs)
    (project / "test_wrong_export.py").write_text(test)
    done = run_pytest(project)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert [report.name for report in (project / "reports").iterdir()] == ["test-another-export-is-wrong"]
    assert "faulty: " in done.stdout
    assert "Softplus" in done.stdout or "softplus" in done.stdout
    assert "report: " in done.stdout
    (row,) = read_result(project / "reports" / "test-another-export-is-wrong").rows[-1:]
    assert row.localized.result is not None
    assert row.localized.result.faults


WORKFLOW = ROOT / "examples" / "ci" / "conrepair.yml"


def test_commands_of_the_workflow_are_ours() -> None:
    lines = [line.strip() for line in WORKFLOW.read_text(encoding="utf-8").splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("conrepair ")]
    assert {words[0] for words in commands} == {"compare", "localize"}
    for words in commands:
        options, rest = command_line().parse_known_args(words)
        check_rest(options, rest)
        assert options.output in {"report", "answers"}


def test_the_workflow_hands_on_what_was_found_where_the_command_fails() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    steps = text.partition("    steps:\n")[2].split("\n      - ")
    place = next(place for place, step in enumerate(steps) if "conrepair localize" in step)
    after = steps[place + 1 :]
    assert all("        if: always()\n" in step for step in after)
    for name in ("results.sarif", "junit.xml", "summary.md"):
        assert any(f"report/{name}" in step for step in after)

"""Projects of examples/, as their users run them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from two_files import save_pair

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


CI = ROOT / "examples" / "ci"
WORKFLOWS = {path: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(CI.glob("*.yml"))}
OURS = [*sorted((ROOT / ".github" / "workflows").glob("*.yml")), ROOT / "action.yml"]


def steps_of(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    jobs = workflow.get("jobs", {"": workflow.get("runs", {"steps": []})})
    return [step for job in jobs.values() for step in job["steps"]]


def commands_in(text: str) -> list[list[str]]:
    found = re.findall(r"(?:^ *|! )conrepair ([^;\n]*)", text.replace("\\\n", ""), re.MULTILINE)
    return [shlex.split(words) for words in found]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_commands_of_a_workflow_are_ours(path: Path) -> None:
    workflow = WORKFLOWS[path]
    texts = (
        [step.get("run", "") for step in steps_of(workflow)]
        if "jobs" in workflow
        else workflow["conversion"]["script"]
    )
    commands = [words for text in texts for words in commands_in(text)]
    assert path.name == "uses.yml" or [words[0] for words in commands] == ["compare", "localize"]
    for words in commands:
        options, rest = command_line().parse_known_args(words)
        check_rest(options, rest)
        assert options.output in {"report", "answers"}


def test_the_workflow_localizes_where_the_comparison_fails_and_hands_on_what_was_found() -> None:
    steps = steps_of(WORKFLOWS[CI / "conrepair.yml"])
    place = next(place for place, step in enumerate(steps) if "conrepair localize" in step.get("run", ""))
    assert "conrepair compare" in steps[place - 1]["run"]
    assert steps[place]["if"] == f"failure() && steps.{steps[place - 1]['id']}.outcome == 'failure'"
    after = steps[place + 1 :]
    assert all(step["if"].startswith("always()") for step in after)
    for name in ("results.sarif", "junit.xml", "summary.md"):
        assert any(f"report/{name}" in str(step) for step in after)


def test_the_workflow_of_the_page_fails_for_what_is_new_alone(tmp_path: Path) -> None:
    """Its steps as GitHub runs them: `bash -e`, the last one where one before it failed."""
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(name: conversion\n.*?)```", page, re.DOTALL)
    workflow = yaml.safe_load(text)
    assert workflow[True] == ["push", "pull_request"], "YAML takes `on` for a truth value"
    check, localize = (step for step in steps_of(workflow) if "conrepair " in step.get("run", "").partition("pip")[0])
    assert localize["if"] == "failure()"
    source, target = save_pair(tmp_path)
    program = tmp_path / "bin" / "conrepair"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m conrepair "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{program.parent}:{os.environ['PATH']}"}

    def ran(step: dict[str, str], *more: str) -> subprocess.CompletedProcess[str]:
        line = step["run"].replace("net.pt2", source.name).replace("net.onnx", target.name)
        words = ["bash", "-e", "-c", shlex.join([*shlex.split(line), *more])]
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    (tmp_path / "known.json").write_text("[]")
    assert ran(check).returncode == 1
    failed = ran(localize)
    assert failed.returncode == 1
    assert f"::error file={target.name},title=conrepair%3A" in failed.stdout
    assert " at conv2: " in failed.stdout
    assert ran(localize, "--update-baseline").returncode == 0
    accepted = ran(check)
    assert accepted.returncode == 0, accepted.stdout
    assert accepted.stdout.startswith("known: ")


def test_the_example_gives_the_action_what_it_takes() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (given,) = (
        step["with"] for step in steps_of(WORKFLOWS[CI / "uses.yml"]) if "/conrepair@" in step.get("uses", "")
    )
    needed = {name for name, about in action["inputs"].items() if about.get("required")}
    assert needed <= set(given) <= set(action["inputs"])
    assert all(about["description"] for about in [*action["inputs"].values(), *action["outputs"].values()])
    for step in steps_of(action):
        assert step.get("shell") or step["uses"]  # a composite action's steps have no default
        assert "${{" not in step.get("run", "")  # values of others reach a shell as variables alone


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_what_our_workflows_run_is_there(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    steps = steps_of(workflow)
    assert all(("run" in step) != ("uses" in step) for step in steps)
    assert all(re.fullmatch(r"[\w./-]+@[\w./-]+", step["uses"]) for step in steps if "uses" in step)
    named = {name for step in steps for name in re.findall(r"\.ci/\w+(?:\.py)?", step.get("run", ""))}
    assert named
    assert all((ROOT / name).is_file() for name in named)
    if "jobs" in workflow:
        assert workflow["permissions"] == {"contents": "read"}
        assert all("timeout-minutes" in job for job in workflow["jobs"].values())


@pytest.mark.parametrize(("factor", "repair", "code"), [(1.0, "false", 0), (1.5, "true", 1), (0.0, "false", 3)])
def test_the_action(factor: float, repair: str, code: int, tmp_path: Path) -> None:
    source, target = save_pair(tmp_path)
    if not factor:
        target.write_bytes(b"none")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "ORIGINAL": source.name,
        "CONVERTED": source.name if factor == 1 else target.name,
        "ARGUMENTS": "--samples 8 --fresh",
        "REPAIR": repair,
        "REPORT": "report",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    program = tmp_path / "conrepair"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m conrepair "$@"\n')
    program.chmod(0o755)
    words = ["bash", str(ROOT / ".ci" / "action"), str(program)]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert (tmp_path / "output").read_text() == f"exit-code={code}\n"
    assert ("::error file=target.onnx" in done.stdout) == (code != 0)
    if code != 3:
        assert (tmp_path / "summary").read_text().count("### ") == (1 if code == 0 else 3)
    assert ("at conv2: " in done.stdout) == (code == 1)
    assert (tmp_path / "report" / "layers" / "junit.xml").exists() == (code == 1)
    assert (tmp_path / "report" / "repaired" / "repaired.onnx").exists() == (code == 1)

"""junit.xml, results.sarif and summary.md: what other programs read, whatever models are called."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import localizations
import pytest
import told_runs
from markdown_it import MarkdownIt

import conrepair
from conrepair.application.report.machine.junit import junit_xml
from conrepair.application.report.machine.markdown import summary_markdown
from conrepair.application.report.machine.sarif import github_lines, sarif_text
from conrepair.application.report.result import AuditResult, LocalizedTarget, Problem, RepairedTarget, Row
from conrepair.application.report.saved import read_result
from conrepair.diagnosis.localization.result import Rule
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.processes.workers import NO_DEVICE
from conrepair.verdicts.evaluate.verdict import Verdict

# Of the npm package @microsoft/sarif-multitool-linux 5.7.0 (MIT), which has it from OASIS.
SCHEMA = json.loads(Path(__file__).with_name("sarif-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)


def every_outcome() -> AuditResult:
    refused = Problem(message="Foo isn't known", explanation="Convert it otherwise.", last_words="Traceback")
    away = Problem(message="no board answers", kind=NO_DEVICE)
    found = localizations.made(3, {1: 0.5})
    localized = localizations.run_of(found, localizations.about()).rows[0].localized
    return told_runs.audit(
        told_runs.row(kind="reference", conversion=""),
        told_runs.row("right", Verdict.NOISE),
        told_runs.row("wrong", Verdict.FAULTY, localized=localized),
        told_runs.row("doubtful", Verdict.UNDECIDED),
        told_runs.row("broken", Verdict.UNDEPLOYABLE, problem=refused),
        told_runs.row("refused", problem=refused),
        told_runs.row("away", problem=away, backend="tvm"),
        told_runs.row("unasked"),
    )


def cases(text: str) -> dict[str, ET.Element]:
    root = ET.fromstring(text)  # noqa: S314 (our own)
    found = list(root.iter("testcase"))
    for element in (root, *root.iter("testsuite")):
        own = list(element.iter("testcase"))
        assert element.get("tests") == str(len(own))
        for tag, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert element.get(count) == str(sum(case.find(tag) is not None for case in own))
    return {case.get("classname", ""): case for case in found}


def test_a_suite_is_called_by_its_model() -> None:
    run = every_outcome()
    rows = [dataclasses.replace(row, reference=f"net{place % 2}") for place, row in enumerate(run.rows)]
    root = ET.fromstring(junit_xml(dataclasses.replace(run, rows=tuple(rows))))  # noqa: S314 (our own)
    assert root.get("name") == f"conrepair {run.kind}"
    assert [suite.get("name") for suite in root] == ["net1", "net0"]
    assert all({case.get("classname") for case in suite.iter("testcase")} == {suite.get("name")} for suite in root)


def test_lines_for_github_stand_for_what_failed() -> None:
    run = every_outcome()
    lines = github_lines(run)
    assert [line.partition(" ")[0] for line in lines] == ["::error", "::warning", "::error", "::error"]
    titles = [line.partition("title=")[2].partition("::")[0] for line in lines]
    assert titles[0] == "conrepair%3A hyperparameters"
    assert titles[1:] == ["conrepair%3A undecided", "conrepair%3A undeployable", "conrepair%3A error"]
    known = {row.where: "issue 7" for row in run.rows if row.verdict is not None}
    (left,) = github_lines(dataclasses.replace(run, known=known))  # the one that couldn't be looked at
    assert "conrepair%3A error" in left


def test_lines_for_github_name_the_file_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    localizations.wrong_pads(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "target.onnx").rename("a,b%.onnx")
    run = conrepair.localize("source.onnx", "a,b%.onnx", in_process=True).run
    (line,) = github_lines(run)
    assert line.startswith(
        "::error file=a%2Cb%25.onnx,title=conrepair%3A hyperparameters::a,b%25.onnx on ONNX Runtime: "
    )
    assert len(line.splitlines()) == 1
    for letters in ("\n::error::", "\r", "%0A"):
        told = github_lines(dataclasses.replace(run, rows=tuple(hostile(row, letters) for row in run.rows)))
        assert [len(line.splitlines()) for line in told] == [1]
        assert "%0A" not in told[0].replace("%250A", "")


def hostile(row: Row, letters: str) -> Row:
    """The same whose faults have these letters in their layers' names."""
    step = row.localized.steps[-1] if row.localized.steps else None
    if step is None:
        return row
    faults = tuple(dataclasses.replace(fault, target_layers=(letters,)) for fault in step.localization.faults)
    return dataclasses.replace(
        row, localized=row.localized.with_own(localization=dataclasses.replace(step.localization, faults=faults))
    )


def sarif(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    VALIDATOR.validate(value)
    (run,) = value["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {told["ruleId"] for told in run["results"]} <= rules
    return dict(run)


def test_a_test_case_for_each_target_and_place() -> None:
    found = cases(junit_xml(every_outcome()))
    outcomes = {name: [child.tag for child in case if child.tag != "properties"] for name, case in found.items()}
    assert outcomes == {
        "right": [],
        "wrong": ["failure"],
        "doubtful": ["failure"],
        "broken": ["failure"],
        "refused": ["error"],
        "away": ["skipped"],
        "unasked": ["skipped"],
    }
    failure = found["wrong"].find("failure")
    assert failure is not None
    assert failure.get("type") == "hyperparameters"
    assert (
        "faulty at block/1/conv (layer_1 in the converted model): pads [0, 0, 1, 1] in the converted model"
        in failure.get("message", "")
    )
    assert "at layer_1" in str(failure.text)
    error = found["refused"].find("error")
    assert error is not None
    assert "Convert it otherwise." in str(error.text)
    assert "Traceback" in str(error.text)


def test_a_result_for_each_fault() -> None:
    run = sarif(sarif_text(every_outcome()))
    told = {(item["ruleId"], item["level"]) for item in run["results"]}
    assert told == {("hyperparameters", "error"), ("undecided", "warning"), ("undeployable", "error")}
    (fault,) = [item for item in run["results"] if item["ruleId"] == "hyperparameters"]
    (place,) = fault["locations"][0]["logicalLocations"]
    assert place["fullyQualifiedName"] == "layer_1"
    assert fault["properties"]["introduced_error"] == 0.5
    invocation = run["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert len(invocation["toolExecutionNotifications"]) == 3


def test_a_rule_is_one_result_with_all_its_layers() -> None:
    found = localizations.made(3)
    rule = Rule(Kind.PARAMETERS, "epsilon is 0.001, not 1e-05", ("layer_0", "layer_2"), among=2)
    found = dataclasses.replace(found, rules=(rule,), verdict=Verdict.FAULTY)
    run = localizations.run_of(found, localizations.about())
    (told,) = sarif(sarif_text(run))["results"]
    assert [place["name"] for place in told["locations"][0]["logicalLocations"]] == ["layer_0", "layer_2"]
    assert "epsilon is 0.001, not 1e-05, in all 2 places" in summary_markdown(run)


def test_the_comment_has_verdict_table_faults_and_what_to_do(tmp_path: Path) -> None:
    localizations.wrong_pads(tmp_path)
    found = conrepair.localize(tmp_path / "source.onnx", tmp_path / "target.onnx", in_process=True)
    run = read_result(found.save(tmp_path / "out"))
    text = (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    assert text == summary_markdown(run)
    assert text.startswith("### ❌ conrepair localize: faulty\n\nDon't ship target.onnx&#58; ")
    assert "| <code>target.onnx</code> | <code>ONNX Runtime</code> | faulty | " in text
    assert "**hyperparameters** at <code>conv</code>: &#96;conv&#96; has pads" in text
    assert "<code>conrepair repair /" in text
    (told,) = sarif(sarif_text(run))["results"]
    file = told["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert file == (tmp_path / "target.onnx").as_uri()
    assert sarif(sarif_text(run))["artifacts"][0]["hashes"]["sha-256"] == found.about.target.sha256
    assert list(cases(junit_xml(run))) == ["source.onnx"]


def test_what_a_repair_fixed_has_passed(tmp_path: Path) -> None:
    localizations.wrong_pads(tmp_path)
    done = conrepair.repair(
        tmp_path / "source.onnx", tmp_path / "target.onnx", output=tmp_path / "out", in_process=True
    )
    run = read_result(tmp_path / "out")
    assert (done.exit_code, run.exit_code) == (0, 0)
    assert json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))["exit_code"] == 0
    (case,) = cases(junit_xml(run)).values()
    assert [child.tag for child in case] == ["properties"]
    assert [item["level"] for item in sarif(sarif_text(run))["results"]] == ["note"]
    text = (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    assert text.startswith("### ✅ conrepair repair: repaired\n")
    assert "faulty, repaired" in text


def test_names_of_others_stay_names() -> None:
    run = told_runs.hostile()
    assert len(cases(junit_xml(run))) == 1  # they have the same name
    assert len(sarif(sarif_text(run))["results"]) == 1
    text = summary_markdown(run)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    kinds = [token.type for token in tokens]
    rows, cells = kinds.count("tr_open"), kinds.count("td_open") + kinds.count("th_open")
    assert (rows, cells) == (1 + len(run.rows), (1 + len(run.rows)) * 7)
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.content for child in inline if child.type == "html_inline"} <= {
        *("<code>", "</code>", "<sub>", "</sub>")
    }
    assert {child.type for child in inline} <= {"text", "html_inline", "strong_open", "strong_close", "softbreak"}
    assert {token.tag for token in tokens if token.type == "heading_open"} == {"h3"}
    for acted_on in ("@", "&#64;s", "#12 ", "&#35;1", "http:", "www.", "\u202e", "`", "*_", "$"):
        assert acted_on not in text, acted_on


@pytest.mark.parametrize("count", [1, 200])
def test_a_comment_is_never_too_long(count: int) -> None:
    found = localizations.made(300, dict.fromkeys(range(300 if count == 1 else 20), 0.5))
    found = localizations.with_names(found, "<&|`_*" * 200, range(300))
    localized = localizations.run_of(found, localizations.about()).rows[0].localized
    rows = [told_runs.row(f"net{place}" + "|" * 300, Verdict.FAULTY, localized=localized) for place in range(count)]
    text = summary_markdown(told_runs.audit(*rows))
    assert len(text.encode()) < 65_536  # letters that GitHub takes of a comment
    assert ("more faults, in result.json" if count == 1 else "and 192 more targets") in text
    assert text.endswith("</sub>\n")


def test_the_comment_of_an_audit_tells_causes_with_the_files_of_repairs() -> None:
    localized = localizations.run_of(localizations.made(3, {1: 0.5}), localizations.about()).rows[0].localized
    rows = [told_runs.row(f"net{place}", Verdict.FAULTY, localized=localized) for place in range(3)]
    rows[1] = dataclasses.replace(rows[1], repaired=RepairedTarget(verdict=Verdict.EQUIVALENT))
    text = summary_markdown(told_runs.audit(*rows))
    assert "**What is wrong, by cause:**\n\n- **3 targets, repaired in 1**: pads" in text
    where = "on <code>own library</code> at <code>block/1/conv (layer&#95;1 in the converted model)</code>"
    assert f"  - <code>net0/torch-onnx</code> {where}, not repaired\n" in text
    assert f"  - <code>net1/torch-onnx</code> {where}\n" in text
    assert "At fault" not in text


def test_one_that_is_right_has_no_faults() -> None:
    run = localizations.run_of(localizations.made(3), localizations.about())
    row = dataclasses.replace(run.rows[0], verdict=Verdict.NOISE)
    run = dataclasses.replace(run, rows=(row,))
    assert sarif(sarif_text(run))["results"] == []
    assert summary_markdown(run).startswith("### ✅ ")
    nothing = dataclasses.replace(row, localized=LocalizedTarget(), verdict=None)
    (case,) = cases(junit_xml(dataclasses.replace(run, rows=(nothing,), kind="compare"))).values()
    assert case.find("skipped") is not None

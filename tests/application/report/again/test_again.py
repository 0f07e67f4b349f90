"""A saved run judged again: what follows from what was saved, and what is said not to."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import localizations
import pytest
import told_runs

import conrepair
from conrepair.application.cli import main
from conrepair.application.report.again.layers import layers_again
from conrepair.application.report.again.run import Thresholds, comparison_again, judged_again
from conrepair.application.report.result import AuditResult
from conrepair.application.report.saved import read_result, result_json
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.ground.runtime.files.listing import LIST
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict


def guilty(found: Localization) -> set[str]:
    return {row.target_layer for row in found.layers if row.guilty}


def test_a_larger_margin_acquits() -> None:
    found = localizations.made(4, {1: 0.5, 2: 3e-5}, output_error=0.4, output_floor=1e-6)
    again, why = layers_again(found, 100)
    assert (guilty(again), why) == ({"layer_1"}, ())
    assert [fault.target_layers for fault in again.faults] == [("layer_1",)]
    assert again.verdict is Verdict.FAULTY
    assert "judged with a margin of 100 instead of 10: 1 layer no longer faulty" in again.notes
    nothing, _ = layers_again(found, 1e6)
    assert (guilty(nothing), nothing.faults) == (set(), ())
    assert nothing.verdict is Verdict.UNDECIDED
    assert "and yet outputs are off by 40 %" in nothing.reason
    right, _ = layers_again(dataclasses.replace(found, output_error=2e-5), 1e6)
    assert right.verdict is Verdict.NOISE


def test_a_smaller_margin_accuses_and_knows_no_fault() -> None:
    found = localizations.made(4)
    row = localizations.row(2, 5e-6)
    found = dataclasses.replace(found, layers=(*(item for item in found.layers if item.order != 2), row))
    again, _ = layers_again(found, 3)
    assert (guilty(again), again.faults, again.verdict) == ({"layer_2"}, (), Verdict.UNDECIDED)
    assert "`layer_2` adds an error of 0.00050 %, more than 3 times the rounding error (0.00010 %)" in again.reason
    assert "localize again" in again.reason


def test_what_the_margin_did_not_accuse_stays() -> None:
    """A fault that no input shows, or that the outputs show, has no error above the margin."""
    found = localizations.made(3, {1: 0.5})
    hidden = dataclasses.replace(
        found, layers=tuple(dataclasses.replace(row, introduced_error=0.0) for row in found.layers)
    )
    again, _ = layers_again(hidden, 1e6)
    assert len(again.faults) == 1
    assert guilty(again) == {"layer_1"}


def test_few_bits_are_not_judged_again() -> None:
    found = localizations.made(3, {1: 0.5}, options=Options(quantized=True))
    again, why = layers_again(found, 1e6)
    assert again == found
    assert "isn't saved" in why[0]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    localizations.wrong_pads(folder)
    pair = folder / "source.onnx", folder / "target.onnx"
    conrepair.compare(*pair, in_process=True).save(folder / "compared")
    conrepair.localize(*pair, in_process=True).save(folder / "localized")
    return folder


def test_outputs_by_other_tolerances(saved: Path) -> None:
    run = read_result(saved / "compared")
    comparison = run.rows[-1].comparison
    assert comparison is not None
    assert comparison.worst is not None
    error = comparison.worst.error
    old = Tolerance()
    wide = Tolerance(atol=2 * error.max_abs, relative_l2=None)
    judged, why = comparison_again(comparison, old, wide)
    assert (judged.verdict, why) == (Verdict.EQUIVALENT, "")
    # Elements aren't saved: half of the largest difference may be enough for all the others, or for none.
    between = Tolerance(atol=error.max_abs / 2, rtol=1.0, relative_l2=None)
    judged, why = comparison_again(comparison, old, between)
    assert (judged, "the difference of each element" in why) == (comparison, True)
    strict, why = comparison_again(judged, old, Tolerance(atol=0, rtol=0))
    assert (strict.verdict, why) == (Verdict.FAULTY, "")
    other = dataclasses.replace(comparison, verdict=Verdict.UNDECIDED, reason="it answers differently each time")
    judged, why = comparison_again(other, old, wide)
    assert (judged, "more than the saved figures" in why) == (other, True)


def test_a_run_keeps_what_it_was_judged_by(saved: Path, tmp_path: Path) -> None:
    pair = saved / "source.onnx", saved / "target.onnx"
    loose = conrepair.compare(*pair, atol=100.0, in_process=True).save(tmp_path / "loose")
    run = read_result(loose)
    assert run.config["tolerance"]["atol"] == 100.0
    assert run.rows[-1].verdict is Verdict.EQUIVALENT
    again = judged_again(run, Thresholds(atol=0.0, rtol=0.0))
    assert (again.rows[-1].verdict, again.exit_code) == (Verdict.FAULTY, 1)
    assert judged_again(run, Thresholds()) == run


def test_the_report_is_made_again_and_the_document_stays(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(saved / "localized", tmp_path / "run")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in folder.iterdir():
        if path.name != "result.json":
            path.unlink()
    assert main(["report", str(folder)]) == 1
    shown = capsys.readouterr().out
    assert "faulty: `conv` adds an error of" in shown
    assert shown.splitlines()[-1] == f"Page: {folder / 'report.html'}"
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after.keys() == before.keys()
    # A page's provenance names its folder, and what's written again isn't the document; all else is the same.
    names = [name for name in before if name not in {"report.html", LIST}]
    assert [after[name] for name in names] == [before[name] for name in names]
    assert main(["report", str(folder), "--margin", "1e9", "-o", str(tmp_path / "looser"), "-f", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["rows"][-1]["localized"]["steps"][0]["localization"]["verdict"] == "undecided"
    assert (folder / "result.json").read_bytes() == before["result.json"]
    again = read_result(tmp_path / "looser")
    assert result_json(again) == document
    assert "judged with margin 1e+09" in again.notes
    assert (tmp_path / "looser" / "report.html").is_file()


def test_what_is_missing_is_said(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shutil.copytree(saved / "compared", tmp_path / "run")
    assert main(["report", str(folder)]) == 1
    assert "missing: layers weren't compared in this run" in capsys.readouterr().out
    assert "layers weren&#39;t compared" in (folder / "report.html").read_text(encoding="utf-8")
    document = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    (folder / "result.json").write_text(json.dumps(document | {"schema_version": 99}))
    assert main(["report", str(folder)]) == 2
    assert "is of version 99" in capsys.readouterr().err
    (folder / "result.json").write_text(json.dumps(document)[:500])
    assert main(["report", str(folder)]) == 2
    assert "is damaged" in capsys.readouterr().err
    assert main(["report", str(saved / "localized"), "--margin", "-1"]) == 2
    assert "--margin is -1" in capsys.readouterr().err


def test_the_folder_that_was_named_is_enough(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(saved / "compared", tmp_path / "out" / "compare-a-b")
    assert main(["report", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == f"Page: {tmp_path / 'out' / 'compare-a-b' / 'report.html'}"
    shutil.copytree(saved / "localized", tmp_path / "out" / "another")
    assert main(["report", str(tmp_path / "out")]) == 2
    assert f"holds 2 runs. Name one of them:\n  {tmp_path / 'out' / 'another'}" in capsys.readouterr().err
    assert main(["report", str(tmp_path)]) == 2
    assert "isn't there" in capsys.readouterr().err


def test_what_a_repair_made_goes_along(saved: Path, tmp_path: Path) -> None:
    pair = saved / "source.onnx", saved / "target.onnx"
    conrepair.repair(*pair, output=tmp_path / "run", in_process=True)
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "copy")]) == 0
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {path.name for path in (tmp_path / "copy").iterdir()} == names
    repaired = read_result(tmp_path / "copy").rows[-1].repaired.result
    assert repaired is not None
    assert repaired.model is not None
    assert Path(repaired.model.path) == tmp_path / "copy" / "repaired.onnx"
    (tmp_path / "run" / "repaired.onnx").unlink()
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "without")]) == 0
    assert not (tmp_path / "without" / "repaired.onnx").exists()


def test_what_somebody_has_put_into_a_run_stays(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(saved / "localized", tmp_path / "run")
    (folder / "notes.txt").write_text("mine")
    assert main(["report", str(folder)]) == 1
    assert (folder / "notes.txt").read_text() == "mine"
    (folder / "layers.csv").write_text("annotated")
    assert main(["report", str(folder)]) == 2
    assert "layers.csv isn't as conrepair wrote it, so it isn't replaced" in capsys.readouterr().err
    assert (folder / "layers.csv").read_text() == "annotated"
    assert main(["report", str(folder), str(folder), "-o", str(tmp_path)]) == 0
    (tmp_path / "comparison.json").write_text("annotated")
    assert main(["report", str(folder), str(folder), "-o", str(tmp_path)]) == 2
    assert (tmp_path / "comparison.json").read_text() == "annotated"


def test_an_output_that_holds_something_else_is_refused(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years")
    assert main(["report", str(saved / "localized"), "-o", str(tmp_path / "mine")]) == 2
    assert "isn't replaced" in capsys.readouterr().err


def test_rows_without_a_comparison_stay() -> None:
    run: AuditResult = told_runs.audit(told_runs.row("net", Verdict.UNDEPLOYABLE))
    assert judged_again(run, Thresholds(rtol=1.0)).rows == run.rows

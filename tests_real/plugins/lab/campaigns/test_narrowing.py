"""Targets asked what they take: in workers, kept by version, whatever ends one; networks within it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ending_targets
import pytest

from conrepair.application.cli import main
from conrepair.application.engine.job_table import jobs
from conrepair.ground.runtime.errors import ConrepairError, UsageError
from conrepair.ground.runtime.files.journal import Journal
from conrepair_lab.campaigns import narrowing_jobs
from conrepair_lab.campaigns.narrowing import TARGETS, support_of, target
from conrepair_lab.generate.narrowing.table import NarrowingRow


def narrow(name: str, op: str, folder: Path, types: Any = None) -> tuple[NarrowingRow, ...]:
    asked: dict[str, Any] = {"target": name, "op": op, "opset": 20, "seconds": 20, "types": types}
    return narrowing_jobs.narrow(folder, journal=folder / "journal", whose="", versions={}, **asked)


def _type(row: NarrowingRow) -> str:
    return next(value for kind, name, value in row.facts if (kind, name) == ("types", "T"))


def test_the_runtime_is_asked_about_the_whole_standard(tmp_path: Path) -> None:
    found = {(_type(row), row.refusal is None) for row in narrow("onnxruntime", "Relu", tmp_path)}
    assert {("float32", True), ("int16", False)} <= found


def test_a_converter_is_asked_about_what_the_runtime_takes(tmp_path: Path) -> None:
    found = narrow("onnx-onnxslim", "Relu", tmp_path, {"Relu": [{"T": "float32"}]})
    assert {_type(row) for row in found} == {"float32"}
    assert all(row.refusal is None for row in found)
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]


def test_what_ended_a_process_is_not_tried_again(tmp_path: Path) -> None:
    Journal(tmp_path / "journal").add("1")
    first, second, *_ = narrow("onnx-onnxslim", "Relu", tmp_path, {"Relu": [{"T": "float32"}]})
    assert first.refusal is None
    assert second.refusal == "ends its process, or takes more than 20 s"


@pytest.mark.workers
def test_a_target_that_crashes_or_hangs_is_asked_on_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONREPAIR_CACHE", str(tmp_path / "cache"))
    told = {**jobs(), "narrow": "ending_targets:narrow"}
    monkeypatch.setattr("conrepair.application.engine.place.jobs", lambda: told)
    found = support_of("onnxruntime", ["Not"], seconds=1.0)["Not"]
    assert (found.settings, found.taken) == (20, 18)
    assert found.refusals == {"ends its process, or takes more than … s": 2}
    assert {ending_targets.KILLS, ending_targets.HANGS} < set(range(20))
    monkeypatch.setattr("conrepair.application.engine.place.jobs", dict)  # nobody to ask
    assert support_of("onnxruntime", ["Not"], seconds=1.0)["Not"] == found
    with pytest.raises(ConrepairError, match="there's no job 'narrow'"):
        support_of("onnxruntime", ["Xor"], seconds=1.0)


def test_targets_are_runtimes_compilers_formats_and_converters() -> None:
    assert {"onnxruntime", "tvm", "keras", "torch", "tflite", "onnx2torch", "onnx-onnxslim"} <= set(TARGETS)
    assert target("tflite").setting.route == ("onnx-keras", "keras-tflite")
    with pytest.raises(UsageError, match="there is no target 'tvn' for support; known: onnxruntime, tvm"):
        target("tvn")


def test_the_command_shows_what_a_target_takes_or_keeps_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONREPAIR_CACHE", str(tmp_path / "cache"))
    words = ["generate", "--support", "onnxruntime", "--operators", "Relu,Not", "-q"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "onnxruntime takes 2 of 2 operators, 1 of them in all settings" in shown
    assert "int16" in shown
    assert main([*words, "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["operators"]["Not"]["taken"] == 20
    assert main([*words, "-n", "2", "--nodes", "2", "-o", str(tmp_path / "out")]) == 0
    summary = json.loads((tmp_path / "out" / "generated.json").read_text(encoding="utf-8"))
    assert "taken by onnxruntime" in summary["versions"]
    assert set(summary["operators"]) <= {"Relu", "Not"}


def test_a_target_or_a_folder_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["generate"])
    assert "give -o FOLDER, or --support TARGET" in capsys.readouterr().err
    assert main(["generate", "--support", "tvn"]) == 2
    assert "there is no target 'tvn'" in capsys.readouterr().err

"""Verbs end with what to do next, as commands that can be typed."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import conrepair
from conrepair.application.cli import main
from conrepair.application.report.next_steps import next_steps, sentence
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.saved import result_json
from conrepair.verdicts.evaluate.verdict import Verdict


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(name: str, factor: float = 1.0) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 4] x) => (float[n, 3] y) { y = MatMul (x, w) }'
    model = onnx.parser.parse_model(text)
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(factor * weight, "w"))
    onnx.save(model, name)


def compare(*arguments: str) -> int:
    return main(["compare", *arguments, "-q"])


def test_a_faulty_file_is_localized_and_repaired_next(capsys: pytest.CaptureFixture[str]) -> None:
    save("my net.onnx")
    save("other.onnx", factor=2.0)
    assert compare("my net.onnx", "other.onnx", "--seed", "3", "--low", "0") == 1
    out = capsys.readouterr().out
    told = " ".join(out.partition("next: ")[2].split())
    commands = told.split("`")[1::2]
    expected = ["my net.onnx", "other.onnx", "--seed", "3", "--low", "0"]
    assert [shlex.split(command) for command in commands] == [
        ["conrepair", "localize", *expected],
        ["conrepair", "repair", *expected],
    ]
    for command in commands:
        assert main([*shlex.split(command)[1:], "-q"]) in {0, 1}
    assert Path("other-repaired/result.json").is_file()


def test_what_is_within_tolerance_but_beyond_rounding_is_no_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    save("other.onnx", factor=1.00002)
    assert compare("net.onnx", "other.onnx") == 0
    out = capsys.readouterr().out
    told = " ".join(out.partition("next: ")[2].split())
    assert re.match("nothing to do if 0.00[0-9]+ % is accepted: it's within tolerance, but more than rounding", told)
    assert "`conrepair localize net.onnx other.onnx` names the layer that adds it" in told


def test_the_table_has_no_empty_columns_and_no_source_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    save("other.onnx")
    assert compare("net.onnx", "other.onnx", "--batch-size", "32") == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert "accuracy" not in head
    assert "conversion" not in head
    assert "ms" not in head.split()  # one batch: its time has the preparations in it
    assert not any("source)" in line or "/source" in line for line in lines)
    assert any(line.startswith("next: nothing to do: proven by comparing the files: all ") for line in lines)
    assert compare("net.onnx", "other.onnx", "--batch-size", "8") == 0
    assert "ms" in capsys.readouterr().out.splitlines()[2].split()


def test_what_does_not_load_is_made_anew(capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    Path("other.tflite").write_bytes(b"1234")
    assert compare("net.onnx", "other.tflite") == 3
    told = capsys.readouterr().out.partition("next: ")[2]
    assert "`conrepair convert net.onnx --to tflite -o other-again.tflite`" in " ".join(told.split())


def told_by(capsys: pytest.CaptureFixture[str]) -> str:
    """The last line, without its commands' quotes."""
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("next: ")
    return last.removeprefix("next: ")


def only_command(line: str) -> list[str]:
    """Words behind `conrepair` of the one command in a line."""
    (command,) = line.split("`")[1::2]
    program, *words = shlex.split(command)
    assert program == "conrepair"
    return words


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["inspect", "my net.onnx"], ["execute", "my net.onnx"]),
        (["convert", "my net.onnx", "--to", "onnx", "--via", "onnx-onnxslim", "-o", "new.onnx"], None),
        (["repair", "my net.onnx", "scaled.onnx"], None),
        (["repair", "my net.onnx", "scaled.onnx", "--seed", "4", "-o", "made"], None),
    ],
)
def test_the_last_line_is_a_command_that_works(
    arguments: list[str], expected: list[str] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    save("my net.onnx")
    save("scaled.onnx", factor=2.0)
    assert main([*arguments, "-q"]) == 0
    words = only_command(told_by(capsys))
    assert expected is None or words == expected
    assert main([*words, "-q"]) == 0
    out = capsys.readouterr().out
    assert words[0] == "execute" or "1 equivalent" in out


def test_an_applied_patch_and_a_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    save("scaled.onnx", factor=2.0)
    assert main(["repair", "net.onnx", "scaled.onnx", "-q"]) == 0
    assert only_command(told_by(capsys)) == ["compare", "net.onnx", "scaled-repaired/repaired.onnx", "--seed", "1"]
    assert main(["repair", "scaled.onnx", "--apply", "scaled-repaired/patch.json", "-o", "again", "-q"]) == 0
    assert only_command(told_by(capsys)) == ["inspect", "again/repaired.onnx"]
    Path("c.json").write_text(json.dumps({"models": [{"name": "net", "path": "net.onnx"}]}))
    assert main(["config", "check", "c.json"]) == 0
    assert only_command(told_by(capsys)) == ["run", "c.json"]


@pytest.mark.parametrize("data", [(), ("--data", "data.npz")])
def test_a_build_that_differs_is_localized_next(data: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    save("scaled.onnx", factor=2.0)
    np.savez("data.npz", x=np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32))
    assert main(["build", "scaled.onnx", "-o", "built", "-q"]) == 0
    assert compare("net.onnx", "built", *data) == 1
    localize, _ = capsys.readouterr().out.rpartition("next: ")[2].split("`")[1::2]
    assert shlex.split(localize)[1:] == ["localize", "net.onnx", "built", *data]
    assert main([*shlex.split(localize)[1:], "-q"]) == 1


def test_a_build_with_branches_is_not_looked_into(capsys: pytest.CaptureFixture[str]) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[n, 4] x, bool f) => (float[n, 4] y) {
    y = If (f) <then_branch = t () => (float[n, 4] a) { a = Exp (x) },
    else_branch = e () => (float[n, 4] b) { b = Neg (x) }> }"""
    model = onnx.parser.parse_model(text)
    onnx.save(model, "net.onnx")
    assert main(["build", "net.onnx", "-o", "built", "-q"]) == 0
    assert "next: " not in capsys.readouterr().out
    assert main(["localize", "net.onnx", "built", "-q"]) == 3
    assert "the layers of the build can't be compared: values decide" in capsys.readouterr().err


def test_an_importer_that_changes_sizes_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """TVM's reads no `output_shape`."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[n, 3, 9, 9] x) => (float[n, 4, 18, 18] y) {
    c = ConvTranspose <strides = [2, 2], output_shape = [18, 18]> (x, w) y = Relu (c) }"""
    model = onnx.parser.parse_model(text)
    weight = np.random.default_rng(0).normal(size=(3, 4, 3, 3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(model, "net.onnx")
    assert main(["build", "net.onnx", "-o", "built", "-q"]) == 0
    assert main(["localize", "net.onnx", "built", "-q"]) == 3
    told = capsys.readouterr().err
    assert "(ConvTranspose `c`, Relu `y`) computes sizes [1, 4, 19, 19]" in told
    assert "TVM's importer" in told


def test_outputs_that_are_not_kept(capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    assert main(["execute", "net.onnx", "-q"]) == 0
    assert "`-o outputs`" in told_by(capsys)
    assert main(["execute", "net.onnx", "-o", "outputs", "-q"]) == 0
    assert "next: " not in capsys.readouterr().out


def test_where_nothing_is_wrong_it_is_said_on_what(capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    save("same.onnx")
    assert main(["repair", "net.onnx", "same.onnx", "-q"]) == 0
    out = capsys.readouterr().out
    assert "nothing to repair: every layer that was compared is within rounding error" in out
    assert "on 8 samples (of 72 random samples, uniform in [-1, 1], seed 0)" in out
    assert "Not tested: other inputs" in out


def test_what_is_right_says_so_in_python() -> None:
    save("net.onnx")
    save("same.onnx")
    for found in (
        conrepair.localize("net.onnx", "same.onnx", in_process=True),
        conrepair.repair("net.onnx", "same.onnx", in_process=True),
    ):
        assert "Nothing to do: no layer is faulty on 8 samples (of " in str(found)
        assert "Not tested: " in str(found)


def test_a_model_that_is_read_shows_progress(capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    assert main(["inspect", "net.onnx"]) == 0
    assert "describe: 1 of 1" in capsys.readouterr().err
    assert main(["inspect", "net.onnx", "-q"]) == 0
    assert not capsys.readouterr().err


def result(verdict: Verdict, kind: Literal["audit", "compare"] = "compare", **config: Any) -> AuditResult:
    """Of two files, without anything that was measured."""
    rows = (
        Row(model="net", conversion="", backend="libraries", kind="reference"),
        Row(model="other", conversion="", backend="libraries", kind="target", reference="net", verdict=verdict),
    )
    named: dict[str, Any] = {name: {} for name in ("samples", "datasets", "recipes", "versions")}
    command = "conrepair compare net.onnx built --data d.npz -q --input x=4:float32"
    return AuditResult(
        name="it",
        folder=Path(),
        rows=rows,
        pairs=(),
        config={"source": "net.onnx", **config},
        seconds=1,
        kind=kind,
        command=command,
        **named,
    )


def test_a_build_is_no_model_file() -> None:
    first, _ = next_steps(result(Verdict.FAULTY, target="built", data="d.npz"))
    assert first.command == "conrepair localize net.onnx built --data d.npz --input x=4:float32"
    (only,) = next_steps(result(Verdict.UNDEPLOYABLE, target="built"))
    assert not only.command
    assert only.why.startswith("make the converted model again")


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("target", ["other.onnx", "other.tflite", "out.npz", "built"])
def test_each_verdict_has_steps_as_json_and_in_a_line(verdict: Verdict, target: str) -> None:
    steps = next_steps(result(verdict, target=target))
    assert steps or target == "out.npz"
    assert all(step["why"] for step in result_json(result(verdict, target=target))["next"])
    assert [shlex.join(["conrepair", *shlex.split(line)[1:]]) for line in sentence(steps).split("`")[1::2]] == [
        step.command for step in steps if step.command
    ]


@pytest.mark.parametrize("config", [{}, {"target": 1}, {"target": None}, {"source": "", "target": "x"}])
def test_a_document_that_names_no_files_has_no_steps(config: dict[str, Any]) -> None:
    assert next_steps(result(Verdict.FAULTY, **config)) == ()
    assert next_steps(dataclasses.replace(result(Verdict.FAULTY, target="x"), command="'"))  # no words of a shell


def test_json_and_the_page_say_what_the_console_says(capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    save("other.onnx", factor=2.0)
    assert compare("net.onnx", "other.onnx") == 1
    said = told_by(capsys)
    assert compare("net.onnx", "other.onnx", "-f", "json", "-o", "out") == 1
    steps = json.loads(capsys.readouterr().out)["next"]
    assert "; ".join(f"`{step['command']}` {step['why']}" for step in steps) == said
    (folder,) = Path("out").iterdir()
    assert json.loads((folder / "result.json").read_text(encoding="utf-8"))["next"] == steps
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    assert "Names the faulty layers&#58; <code>conrepair localize net.onnx other.onnx</code>" in summary
    assert main(["localize", "net.onnx", "other.onnx", "-q", "-f", "json"]) == 1
    (step,) = json.loads(capsys.readouterr().out)["next"]
    assert step["command"] == "conrepair repair net.onnx other.onnx"
    words = "net.onnx --to onnx --via onnx-onnxslim -o n.onnx -q -f json"
    assert main(["convert", *words.split()]) == 0
    (step,) = json.loads(capsys.readouterr().out)["next"]
    assert step["command"] == "conrepair compare net.onnx n.onnx --samples 64"


def test_options_are_not_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    assert compare("net.onnx", "net.onnx", "--sample", "3") == 2
    assert "there's no option --sample; did you mean '--samples'?" in capsys.readouterr().err


def test_an_option_that_was_taken_out_says_what_there_is_instead(capsys: pytest.CaptureFixture[str]) -> None:
    save("net.onnx")
    assert main(["localize", "net.onnx", "net.onnx", "--suspicious", "-q"]) == 2
    told = (
        "conrepair localize has no --suspicious: layers aren't ranked any more, as `conrepair localize` names those"
    )
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_result_says_that_data_fit_by_shape_only(folder: Path) -> None:
    save("net.onnx")
    np.savez(folder / "data.npz", labels=np.zeros((5, 4), np.float32))
    compared = conrepair.compare("net.onnx", "net.onnx", data="data.npz", in_process=True)
    assert "note: net.onnx-source: no array of the data is called x" in str(compared)

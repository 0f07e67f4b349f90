"""`conrepair trace` and `conrepair accuracy` at the command line: one network, a folder, tables as files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest

from conrepair.application.cli.main import main
from conrepair_lab.report.schema import TRACE_DOCUMENT

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
ELU = "g (float[1, 8] x) => (float[1, 8] y) { y = Elu (x) }"
RELU = "g (float[n, 8] x) => (float[n, 8] y) { a = Relu (x) y = Neg (a) }"
FAST = "--evaluations 60 -q"


@pytest.fixture
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, body in (("elu", ELU), ("deep/relu", RELU)):
        path = tmp_path / "nets" / f"{name}.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(onnx.parser.parse_model(HEAD + body), path)
    return tmp_path / "nets"


def test_what_is_known_of_an_operator_is_not_found_again(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["accuracy", "ort-all", "ort-none", "--operator", "Elu", "-o", "known", "-q"]) == 1
    traced = f"trace nets/elu.onnx --setting ort-all {FAST}"
    assert main(traced.split()) == 1
    assert main(f"{traced} --accuracy known/accuracy.json".split()) == 0
    assert main(f"trace nets/elu.onnx --setting tflite {FAST} --accuracy known/accuracy.json".split()) == 2
    assert "has no errors of tflite-delegate or tflite-reference, but of ort-all, ort-none" in capsys.readouterr().err
    assert main(f"{traced} --accuracy nets/elu.onnx".split()) == 2
    assert "isn't what `conrepair accuracy -o` writes" in capsys.readouterr().err


def test_a_network_as_text_json_and_programs(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"trace nets/elu.onnx --setting ort-all {FAST} -o out".split()) == 1
    told = capsys.readouterr().out
    assert re.search("wrong: ort-all is .* off the exact value of `y`, .*; so is ort-none", told)
    assert re.search("Elu `y`: receives no error, adds an error .* times the rounding error", told)
    assert "e^x - 1" in told
    assert main(f"trace nets/elu.onnx --setting ort-all {FAST} -f json".split()) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["deviations"][0]["blamed"] == "both"
    saved = json.loads(Path("out/trace.json").read_text(encoding="utf-8"))
    jsonschema.validate(saved, TRACE_DOCUMENT.schema)
    assert TRACE_DOCUMENT.path.read_text(encoding="utf-8") == TRACE_DOCUMENT.text, "run `make schema`"
    assert saved["deviations"] == document["deviations"]
    subprocess.run([sys.executable, "with.py"], cwd="out", check=True)
    with np.load("out/outputs.npz") as outputs, np.load("out/inputs.npz") as inputs:
        place = tuple(document["deviations"][0]["place"])
        x, y = float(inputs["x"][place]), float(outputs["y"][place])
        assert abs(y - np.expm1(x)) > 1e-5 * abs(np.expm1(x))


def test_a_folder_ends_with_a_summary(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"trace nets --setting ort-all {FAST} -o out".split()) == 1
    told = capsys.readouterr().out
    assert "2 networks: 1 equal, 1 wrong" in told
    assert {path.parent.name for path in Path("out").rglob("trace.json")} == {"elu", "relu"}
    assert main(f"trace nets --setting ort-all {FAST} -f json".split()) == 1
    assert json.loads(capsys.readouterr().out)["kinds"] == {"equal": 1, "wrong": 1}


def test_files_of_another_command_are_not_replaced(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine", encoding="utf-8")
    assert main(f"trace nets/elu.onnx --setting ort-all {FAST} -o mine".split()) == 2
    assert "mine" in capsys.readouterr().err
    assert Path("mine/notes.txt").read_text(encoding="utf-8") == "mine"


def test_data_that_is_read_is_not_replaced(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = "inputs nets/elu.onnx -o x.npz --samples 2 -q"
    assert main(inputs.split()) == 0
    assert main(f"{inputs} --data x.npz --force".split()) == 2
    assert "x.npz is read, and would be replaced" in capsys.readouterr().err
    assert main(["execute", "nets/elu.onnx", "-o", "ran", "-q"]) == 0
    kept = next(Path("ran").glob("*.npy"))
    assert main(f"execute nets/elu.onnx --data {kept} -o ran --force -q".split()) == 2
    assert main(f"trace nets/elu.onnx --setting ort-all {FAST} -o out".split()) == 1
    capsys.readouterr()
    assert main(f"trace nets/elu.onnx --setting ort-all {FAST} --data out/inputs.npz -o out".split()) == 2
    assert "out/inputs.npz lies in" in capsys.readouterr().err


def test_accuracy_as_table_and_files(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["accuracy", "ort-none", "ort-all", "--operator", "Elu", "--operator", "Erf", "-q", "-o", "table"]) == 1
    )
    told = capsys.readouterr().out
    assert "Elu" in told
    assert "ort-all" in told
    found = json.loads(Path("table/accuracy.json").read_text(encoding="utf-8"))
    assert {path.name for path in Path("table").iterdir()} >= {"accuracy.json", "accuracy.md", "accuracy.svg"}
    assert "e^x - 1" in Path("table/accuracy.md").read_text(encoding="utf-8")
    assert "Elu" in json.dumps(found)
    assert main(["accuracy", "ort-none", "--operator", "Erf", "-q"]) == 0


def test_a_configuration_traces_its_networks(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    section = {"models": ["nets/elu.onnx", "nets"], "setting": "ort-all", "evaluations": 60}
    Path("config.json").write_text(json.dumps({"name": "traced", "trace": section}), encoding="utf-8")
    assert main(["run", "config.json", "-q"]) == 1
    assert "2 networks: 1 equal, 1 wrong" in capsys.readouterr().out
    found = {path.parent.name for path in Path("generated/traces").rglob("trace.json")}
    assert found == {"elu.onnx", "elu", "relu"}

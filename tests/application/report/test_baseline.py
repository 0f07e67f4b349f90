"""A baseline: what is known doesn't fail, what is new or worse does, and what is gone is said."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from conrepair.application.cli import main
from conrepair.application.report.saved import read_result

FILE = "known.json"


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save("net.onnx")
    save("off.onnx", 1.01)
    return tmp_path


def save(name: str, factor: float = 1.0) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 4] x) => (float[n, 3] y) { y = MatMul (x, w) }'
    model = onnx.parser.parse_model(text)
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    weight[:, 0] *= factor
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(model, name)


def compare(*words: str) -> int:
    return main(["compare", "net.onnx", "off.onnx", "-q", "--baseline", FILE, *words])


def known() -> list[dict[str, Any]]:
    return json.loads(Path(FILE).read_text(encoding="utf-8"))


def notes(capsys: pytest.CaptureFixture[str]) -> list[str]:
    words = ("known: ", "new: ", "worse: ", "no longer there: ", "can't tell: ")
    head = capsys.readouterr().out.split("\n\n")[0]  # which a report begins with
    lines = head.replace("\n", " ").replace("  ", " ").strip()
    return [line.strip() for line in re.split(rf"(?={'|'.join(words)})", lines) if line]


def test_what_is_known_does_not_fail_and_what_is_worse_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "net.onnx", "off.onnx", "-q"]) == 1
    capsys.readouterr()
    assert compare("--update-baseline") == 0
    (entry,) = known()
    assert (entry["model"], entry["backend"], entry["verdict"]) == ("off.onnx", "libraries", "faulty")
    entry["where"] = "issue 7"
    Path(FILE).write_text(json.dumps([entry]), encoding="utf-8")
    capsys.readouterr()
    assert compare("-o", "out") == 0
    assert notes(capsys) == ["known: off.onnx on ONNX Runtime is faulty (issue 7)"]
    (folder,) = Path("out").iterdir()
    saved = read_result(folder)
    assert saved.exit_code == 0
    assert saved.known == {"off.onnx/source on libraries": "issue 7"}
    assert 'failures="0"' in (folder / "junit.xml").read_text(encoding="utf-8")
    assert {found["level"] for found in sarif(folder)} <= {"note"}
    save("off.onnx", 1.5)
    assert compare() == 1
    assert any(note.startswith("worse: off.onnx on ONNX Runtime: relative error: ") for note in notes(capsys))
    assert compare("--update-baseline") == 0
    assert [item["where"] for item in known()] == ["issue 7"]


def sarif(folder: Path) -> list[dict[str, Any]]:
    (run,) = json.loads((folder / "results.sarif").read_text(encoding="utf-8"))["runs"]
    return run["results"]


def test_what_is_gone_is_said_and_taken_out(capsys: pytest.CaptureFixture[str]) -> None:
    other = {"where": "elsewhere", "model": "another.onnx"}
    assert compare("--update-baseline") == 0
    Path(FILE).write_text(json.dumps([*known(), other]), encoding="utf-8")
    save("off.onnx")
    capsys.readouterr()
    assert compare() == 0
    assert notes(capsys) == [
        f"no longer there: off.onnx on ONNX Runtime is equivalent; {FILE} has it: --update-baseline removes it"
    ]
    assert compare("--update-baseline") == 0
    assert known() == [other]


def test_what_is_new_fails(capsys: pytest.CaptureFixture[str]) -> None:
    Path(FILE).write_text('[{"where": "elsewhere", "model": "another.onnx"}]', encoding="utf-8")
    assert compare() == 1
    assert notes(capsys) == [f"new: off.onnx on ONNX Runtime is faulty, and {FILE} doesn't list it"]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({}, 0),  # what isn't said may be anything
        ({"verdict": "faulty"}, 0),
        ({"verdict": "undecided"}, 1),
        ({"error": 1e-6, "floor": 1e-7}, 1),
        ({"error": "inf"}, 0),
        ({"differing": [0, 32]}, 0),
        ({"backend": "onnxruntime"}, 1),
        ({"conversion": "onnx2torch"}, 1),
        ({"differing": [0, 0]}, 0),
        ({"differing": [5, 3]}, 2),
        ({"differing": [-1, 3]}, 2),
        ({"error": "nan"}, 0),
    ],
)
def test_an_entry(entry: dict[str, Any], code: int) -> None:
    Path(FILE).write_text(json.dumps([{"where": "here", "model": "off.onnx"} | entry]), encoding="utf-8")
    assert compare() == code


@pytest.mark.parametrize(
    "text", ["{}", "[1]", '[{"model": "x"}]', '[{"where": "x", "model": "y", "verdict": "bad"}]']
)
def test_a_bad_one_is_refused_and_stays(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(FILE).write_text(text, encoding="utf-8")
    assert compare("--update-baseline") == 2
    assert f"{FILE} is no baseline" in capsys.readouterr().err
    assert Path(FILE).read_text(encoding="utf-8") == text


def test_a_file_has_to_be_named_and_to_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "net.onnx", "off.onnx", "-q", "--update-baseline"]) == 2
    assert "--baseline FILE: name it" in capsys.readouterr().err
    assert compare() == 2
    assert "no baseline" in capsys.readouterr().err


def audit(**more: Any) -> None:
    value = {
        "schema_version": 1,
        "name": "audit",
        "dataset": {"synthetic": {"samples": 8}},
        "models": [{"name": "net", "path": "net.onnx"}, {"name": "off", "path": "off.onnx", "compare_with": "net"}],
        "backends": ["libraries"],
    }
    Path("config.json").write_text(json.dumps(value | more), encoding="utf-8")


def test_a_saved_run_and_an_audit(capsys: pytest.CaptureFixture[str]) -> None:
    audit()
    assert main(["run", "config.json", "-q", "--fresh"]) == 1
    assert main(["report", "generated/audit", "--baseline", FILE, "--update-baseline"]) == 0
    assert [item["model"] for item in known()] == ["off"]
    capsys.readouterr()
    assert main(["run", "config.json", "-q", "--baseline", FILE]) == 0
    assert any(note.startswith("known: off") for note in notes(capsys))
    assert read_result("generated/audit").exit_code == 0


def test_a_fault_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    audit(stages={"localize": True})
    assert main(["run", "config.json", "-q", "--baseline", FILE, "--update-baseline"]) == 0
    (entry,) = known()
    (fault,) = entry["faults"]
    assert fault.startswith("parameters at ")
    Path(FILE).write_text(json.dumps([entry | {"faults": ["graph at elsewhere"]}]), encoding="utf-8")
    capsys.readouterr()
    assert main(["run", "config.json", "-q", "--baseline", FILE]) == 1
    assert any(note.startswith("worse: off on ONNX Runtime: parameters at") for note in notes(capsys))


def deep(name: str, *scaled: tuple[int, float]) -> None:
    """A network of three layers, of whose weights a row is scaled."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[n, 4] x) => (float[n, 4] y)
    { a = MatMul (x, w0)
      b = Relu (a)
      c = MatMul (b, w1)
      d = Tanh (c)
      y = MatMul (d, w2) }"""
    model = onnx.parser.parse_model(text)
    for place in range(3):
        weight = np.random.default_rng(place).normal(size=(4, 4)).astype(np.float32)
        for layer, factor in scaled:
            weight[:, 0] *= factor if layer == place else 1
        model.graph.initializer.append(numpy_helper.from_array(weight, f"w{place}"))
    onnx.save(model, name)


@pytest.mark.parametrize("verb", ["compare", "localize"])
def test_a_new_fault_beside_a_known_one_or_instead_of_it_fails(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    deep("net.onnx")
    deep("off.onnx", (1, 1.01))
    files = ["net.onnx", "off.onnx", "-q", "--baseline", FILE]
    other = {"compare": "localize", "localize": "compare"}[verb]
    assert main([verb, *files, "--update-baseline"]) == 0
    (entry,) = known()
    assert (entry["model"], entry["faults"]) == ("off.onnx", ["parameters at c"])
    assert main([other, *files]) == main([verb, *files]) == 0
    deep("off.onnx", (1, 1.01), (2, 1.01))
    capsys.readouterr()
    assert main([other, *files]) == main([verb, *files, "-f", "github"]) == 1
    lines = [line.partition(" file=") for line in capsys.readouterr().out.splitlines() if line.startswith("::")]
    assert [(level, "at y" in text, "at c" in text) for level, _, text in lines] == [
        ("::error", True, False),
        ("::notice", False, True),
    ]
    deep("off.onnx", (2, 1.01))
    assert main([other, *files]) == main([verb, *files]) == 1


@pytest.mark.parametrize("factor", [1.02, 1.2, 2.0])
def test_outputs_alone_do_not_tell_a_known_fault_from_a_new_one(
    factor: float, capsys: pytest.CaptureFixture[str]
) -> None:
    save("off.onnx", 1.2)
    assert compare("--update-baseline") == 0
    (entry,) = known()
    del entry["faults"]
    Path(FILE).write_text(json.dumps([entry]), encoding="utf-8")
    save("off.onnx", factor)
    capsys.readouterr()
    assert compare() == int(factor != 1.2)
    (note,) = notes(capsys)
    ways = {1.02: "can't tell: ", 1.2: "known: ", 2.0: "worse: "}
    assert note.startswith(ways[factor])
    assert ("outputs alone" in note) == (factor != 2.0)


def test_a_file_has_one_name_in_all_baselines_and_faults_both() -> None:
    assert main(["localize", "net.onnx", "off.onnx", "-q", "-o", "out"]) == 1
    assert main(["report", "out", "--baseline", FILE, "--update-baseline"]) == 0
    (entry,) = known()
    assert entry["model"] == "off.onnx"
    assert compare() == 0
    (fault,) = entry["faults"]
    kind, _, _ = fault.partition(" at ")
    Path(FILE).write_text(json.dumps([entry | {"faults": [f"{kind} at y"]}]), encoding="utf-8")
    assert main(["report", "out", "--baseline", FILE, "-f", "github"]) == 0
    Path(FILE).write_text(json.dumps([entry | {"model": "off.onnx-1"}]), encoding="utf-8")
    assert main(["report", "out", "--baseline", FILE]) == 0  # as it was called once

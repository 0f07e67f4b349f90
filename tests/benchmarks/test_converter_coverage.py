"""Coverage of converters by networks: counted behind some of them, whatever ends the process; drawn as curves."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks.generate import coverage_of_converters, covering
from benchmarks.generate.coverage_of_converters import covered, curves_of
from benchmarks.generate.curves import curves_svg

_STAND_IN = """
import json, sys
from pathlib import Path
asked = json.loads(Path(sys.argv[-1]).read_text())
folder = Path(asked["folder"])
with (folder / "found.jsonl").open("a") as found:
    for number, model in enumerate(asked["models"]):
        (folder / "at").write_text(str(number))
        if number == 1 and 1 not in asked["without"]:
            sys.exit(3)
        print(json.dumps({"model": model, "refusal": "ends" if number in asked["without"] else None}), file=found)
    counts = {"covered_lines": 5, "num_statements": 10, "covered_branches": 1, "num_branches": 4}
    print(json.dumps({"networks": number + 1, **counts}), file=found)
"""


def test_a_model_that_ends_the_process_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "stand_in.py"
    script.write_text(_STAND_IN, encoding="utf-8")
    monkeypatch.setattr(coverage_of_converters, "_COMMAND", [sys.executable, str(script)])
    models = [Path("a.onnx"), Path("b.onnx"), Path("c.onnx")]
    rows = covered("onnx2torch", models, tmp_path / "found")
    assert {row["model"]: row["refusal"] for row in rows if "model" in row} == {
        "a.onnx": None,
        "b.onnx": "ends",
        "c.onnx": None,
    }
    assert curves_of(rows) == ([(3, 0.5)], [(3, 0.25)])
    assert covered("onnx2torch", models, tmp_path / "found") == rows  # done already


def test_what_is_converted_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "converted"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "steps.py").write_text(
        "def step(long):\n    if long:\n        return 2\n    return 1\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(covering.CONVERTERS, "ours", ("converted",))

    def taking(_: str) -> object:
        from converted.steps import step

        return lambda path: step(path.stem == "long")

    monkeypatch.setattr(covering, "_taking", taking)
    folder = tmp_path / "found"
    folder.mkdir()
    asked = {"converter": "ours", "models": ["short.onnx", "long.onnx"], "marks": [0, 1], "seconds": 20}
    covering.main(asked | {"folder": str(folder), "without": []})
    rows = [json.loads(line) for line in (folder / "found.jsonl").read_text(encoding="utf-8").splitlines()]
    lines, branches = curves_of(rows)
    assert lines == [(0, 0.25), (1, 0.75), (2, 1.0)]
    assert branches == [(0, 0.0), (1, 0.5), (2, 1.0)]


def test_curves_are_a_picture() -> None:
    chart = {"ours": ([(0, 0.2), (10, 0.5)], [(0, 0.0), (10, 0.3)]), "theirs": ([(0, 0.2), (10, 0.4)], [])}
    root = ET.fromstring(curves_svg("A & B", {"one": chart, "two": chart}))  # noqa: S314 (ours)
    assert root.tag.endswith("svg")
    paths = [item.get("d") for item in root.iter() if item.get("class") == "curve" and "L" in (item.get("d") or "")]
    assert len(paths) == 4

"""A step whose library isn't installed says nothing of the model: `error` wherever a verdict is told."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from documents import rows_in
from two_files import save_pair

from conrepair.application.cli import main
from conrepair.ground.runtime.libraries import missing_library

MISSING = "the library onnxslim isn't installed"


def write_config(folder: Path) -> str:
    model = {
        "name": "net",
        "path": "source.onnx",
        "conversions": [{"via": ["onnx-onnxslim", "onnx-normalise"]}, {"via": ["onnx-normalise"]}],
    }
    path = folder / "audit.json"
    path.write_text(json.dumps({"models": [model], "dataset": {"synthetic": {"samples": 4}}}))
    return str(path)


@pytest.fixture
def without_onnxslim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxslim", None)


@pytest.mark.usefixtures("without_onnxslim")
def test_what_waits_for_a_missing_library_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_pair(tmp_path)
    assert main(["run", write_config(tmp_path), "-q"]) == 2
    shown = capsys.readouterr().out
    assert MISSING in shown
    assert "undeployable" not in shown
    assert "2 error" in shown
    folder = tmp_path / "generated" / "audit"
    verdicts = {row["name"]: row["verdict"] for row in rows_in(folder)}
    assert verdicts == {
        "net/source": None,
        "net/onnx-onnxslim": None,
        "net/onnx-onnxslim+onnx-normalise": None,
        "net/onnx-normalise": "equivalent",
    }
    for name in ("summary.md", "summary.txt", "results.sarif", "report.html"):
        assert "undeployable" not in _told(folder / name), name
    markdown = (folder / "summary.md").read_text(encoding="utf-8")
    assert "**Couldn't be checked:**" in markdown
    assert "**Faulty:**" not in markdown
    suite = ET.parse(folder / "junit.xml").getroot()  # noqa: S314 (we wrote it)
    assert (suite.get("failures"), suite.get("errors")) == ("0", "2")


def _told(path: Path) -> str:
    """What a file tells of this audit; its rules and styles name all verdicts."""
    if path.suffix == ".sarif":
        (run,) = json.loads(path.read_text(encoding="utf-8"))["runs"]
        return json.dumps({name: run[name] for name in ("results", "invocations")})
    return path.read_text(encoding="utf-8")


def test_a_missing_library_is_found_below_what_it_led_to() -> None:
    def told(error: Exception, cause: Exception | None) -> str:
        try:
            raise error from cause
        except Exception as raised:  # noqa: BLE001 (what it is is the question)
            return str(missing_library(raised) or "")

    absent = ModuleNotFoundError("No module named 'onnxslim'", name="onnxslim")
    assert MISSING in told(RuntimeError("the export failed"), absent)
    assert not told(RuntimeError("the export failed"), ValueError("of a value"))
    assert not told(RuntimeError("the export failed"), ModuleNotFoundError("of the user's", name="nets"))

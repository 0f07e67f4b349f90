"""`config check` says "can be run" only of what a run doesn't refuse, and names all that is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from two_files import save_pair

from conrepair.application.cli import main
from conrepair.ground.runtime import libraries

NET = {"name": "net", "path": "source.onnx"}
DRAWN = {"dataset": {"synthetic": {"samples": 2}}}


def checked(capsys: pytest.CaptureFixture[str], folder: Path, value: Any) -> tuple[int, str]:
    (folder / "audit.json").write_text(json.dumps(value))
    code = main(["config", "check", str(folder / "audit.json")])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out if code == 0 else printed.err


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "model": ({"models": [NET | {"path": "gone.onnx"}]}, "$.models[0].path: "),
    "model of no known format": ({"models": [NET | {"path": "audit.json"}]}, "$.models[0].path: "),
    "photos": ({"models": [NET], "dataset": {"folder": "gone"}}, "$.dataset: "),
    "tensors": ({"models": [NET], "dataset": {"tensors": "gone.npz"}}, "$.dataset: "),
    "a model's data": ({"models": [NET | {"dataset": {"folder": "gone"}}]}, "$.models[0].dataset: "),
    "photos of the zoo": ({"models": [NET], "dataset": {"zoo": "gone"}}, "$.dataset.zoo: "),
    "recipe": ({"models": [NET | {"recipe": "gone"}]}, "$.models[0].recipe: "),
    "factory": ({"models": [{"name": "a", "factory": "nowhere:net"}]}, "$.models[0].factory: "),
    "function": ({"models": [{"name": "a", "factory": "nets:gone"}]}, "$.models[0].factory: "),
    "weights": ({"models": [{"name": "a", "factory": "nets:net", "weights": "gone"}]}, "$.models[0].weights: "),
    "model of the zoo": ({"models": [{"name": "a", "zoo": "gone"}]}, "$.models[0].zoo: "),
    "route": ({"models": [NET | {"conversions": [{"via": ["keras-tflite"]}]}]}, "$.models[0].conversions[0]: "),
    "build": ({"models": [NET], "backends": [{"name": "tvm", "built": "gone"}]}, "$.backends[0]: "),
    "pass": ({"models": [NET], "backends": [{"name": "tvm", "disabled_pass": ["Gone"]}]}, "$.backends[0]: "),
    "architecture": ({"architectures": [{"family": "keras", "names": ["Gone"]}]}, "$.architectures[0]: "),
    "cluster without TLS": (
        {"models": [NET], "engine": {"dask": {"scheduler": "tcp://10.1.2.3:8786", "exchange": "there"}}},
        "$.engine.dask: tcp://10.1.2.3:8786 isn't encrypted",
    ),
    "traced": ({"models": [NET], "trace": {"models": ["gone.onnx"]}}, "$.trace.models: no such file"),
    "tried": ({"models": [NET], "fuzz": {"models": ["gone.onnx"]}}, "$.fuzz.models: no such file"),
    "system": ({"models": [NET], "fuzz": {"systems": ["gone"]}}, "$.fuzz.systems: there is no system called 'gone'"),
    "traced system": (
        {"models": [NET], "trace": {"models": ["source.onnx"], "setting": "O9"}},
        "$.trace.setting: there is no system",
    ),
    "system beside": (
        {"models": [NET], "trace": {"models": ["source.onnx"], "against": "gone"}},
        "$.trace.against: there is no system",
    ),
    "folder of somebody": ({"models": [NET], "name": "taken"}, "taken exists"),
}


@pytest.mark.parametrize(("changes", "place"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_missing_is_named(
    changes: dict[str, Any], place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_pair(tmp_path)
    (tmp_path / "nets.py").write_text("raise SystemExit('a check runs nothing')\ndef net():\n    return None\n")
    (tmp_path / "generated" / "taken").mkdir(parents=True)
    (tmp_path / "generated" / "taken" / "mine.txt").touch()
    code, told = checked(capsys, tmp_path, DRAWN | changes)
    assert code == 2
    lines = told.splitlines()[1:]
    assert len(lines) == 1, told
    assert place in lines[0]


def test_what_is_there_can_be_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_pair(tmp_path)
    (tmp_path / "nets.py").write_text("raise SystemExit('a check runs nothing')\ndef net():\n    return None\n")
    made = {"name": "made", "factory": "nets:net", "inputs": [{"shape": ["batch", 3]}]}
    whole = DRAWN | {"models": [NET | {"conversions": ["torch", "keras"]}, made], "backends": ["libraries", "tvm"]}
    assert checked(capsys, tmp_path, whole)[0] == 0
    assert "nets" not in sys.modules


@pytest.mark.parametrize(
    "section", [{"fuzz": {"systems": ["ort-none"]}}, {"trace": {"models": ["source.onnx"], "against": "exact"}}]
)
def test_a_campaign_or_a_trace_alone_can_be_run(
    section: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_pair(tmp_path)
    assert checked(capsys, tmp_path, section)[0] == 0


@pytest.mark.parametrize("more", [{}, {"top_k": "5", "batchsize": 4}], ids=["right form", "wrong form"])
def test_all_that_is_wrong_is_named(more: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_pair(tmp_path)
    models = [
        NET | {"conversions": [{"via": ["gone"]}, {"to": "onnx", "options": {"onnx-normalise": {"gone": 1}}}]},
        {"name": "b", "path": "gone.onnx"},
        {"name": "c", "path": "source.onnx", "recipe": "gone"},
        {"name": "d", "factory": "nowhere:net"},
    ]
    code, told = checked(capsys, tmp_path, {"models": models, "dataset": {"folder": "gone"}} | more)
    assert code == 2
    places = ["models[0].conversions[0]", "models[0].conversions[1]", "models[1].path", "models[2].recipe"]
    for place in [*places, "models[3].factory", "dataset", *more]:
        assert f"  $.{place}: " in told, place


def test_a_library_that_isnt_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_pair(tmp_path)
    find = libraries.importlib.util.find_spec
    gone = {"torch", "onnx2torch", "tvm"}
    monkeypatch.setattr(libraries.importlib.util, "find_spec", lambda name: None if name in gone else find(name))
    (tmp_path / "net.pt2").write_bytes(b"whatever is in it")
    models = [NET | {"conversions": ["keras", "torch"]}, {"name": "other", "path": "net.pt2"}]
    code, told = checked(capsys, tmp_path, DRAWN | {"models": models, "backends": ["libraries", "tvm"]})
    assert code == 2
    assert "  $.models[0].conversions[1]: onnx2torch: the library onnx2torch isn't installed" in told
    assert "  $.models[1]: the library torch isn't installed" in told
    assert "  $.backends[1]: the library apache-tvm isn't installed" in told
    assert "conversions[0]" not in told


@pytest.mark.parametrize("value", [[], 3, {}, {"models": 3}, {"models": [3, NET], "top_k": "x"}, {"dataset": 3}])
def test_what_has_no_parts_is_refused_for_its_form(
    value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checked(capsys, tmp_path, value)[0] == 2

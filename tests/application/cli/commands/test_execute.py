"""What `execute` refuses to run, and what it calls what it compares with."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from conrepair.application.cli import main
from conrepair.application.verbs import options
from conrepair.ground.runtime import plugins


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 4] x) => (float[n, 4] y) { y = Relu (x) }'
    onnx.save(onnx.parser.parse_model(text), "net.onnx")


def test_it_names_the_library_that_it_compares_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["execute", "net.onnx", "--backend", "onnxruntime", "-q"]) == 0
    told = capsys.readouterr().out
    assert "8 samples, run by onnxruntime\n" in told
    assert "beside ONNX Runtime without optimizations: equivalent" in told


def test_a_wrong_name_is_told_with_those_of_plug_ins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plugins, "named", lambda group: {"tract": "there:BACKEND"} if group == "backends" else {})
    with pytest.raises(SystemExit, match="2"):
        main(["execute", "net.onnx", "--backend", "trakt"])
    assert "'trakt' isn't known; did you mean 'tract'? (known: libraries, " in capsys.readouterr().err
    assert "tract" not in tuple(options._BACKENDS), "help doesn't depend on what is installed"


def test_compare_says_which_verb_has_backends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "net.onnx", "net.onnx", "--backend", "tvm"]) == 2
    assert "conrepair execute MODEL --backend NAME" in capsys.readouterr().err

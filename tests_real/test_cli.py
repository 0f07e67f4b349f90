"""Commands that make environments."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stand_in_environment import MAKES_IT

from conrepair.application.cli.main import main
from conrepair.ground.runtime.outside.environments import ENVIRONMENTS, Environment


def test_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    python = tmp_path / "python"  # tests_real/ground/runtime/outside/test_environments.py has a real one
    python.write_text(f"#!/bin/sh\n{MAKES_IT}")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    small = Environment("onnx2tf", "tests", 0.01, 1, {})
    monkeypatch.setitem(ENVIRONMENTS, "onnx2tf", small)
    assert main(["environments"]) == 0
    listing = capsys.readouterr().out
    assert listing.count("not made (about") == 2
    assert "onnx-tflite-onnx2tf" in listing
    assert main(["environments", "make", "onnx2tf", "-q"]) == 0
    folder = tmp_path / "conrepair" / "environments" / f"onnx2tf-{small.key}"
    assert capsys.readouterr().out.startswith(f"{folder}: 0.0 GB, made in")
    assert main(["environments", "list"]) == 0
    assert capsys.readouterr().out.count("not made (about") == 1
    assert main(["environments", "remove", "onnx2tf"]) == 0
    assert capsys.readouterr().out == f"removed {folder}\n"
    assert not folder.exists()

"""Whole verbs on a GPU, in confined workers, where there is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small_models as small

from conrepair.application.cli import main
from conrepair.ground.runtime.gpu_devices import gpu_devices

_TARGET = "cuda"
pytestmark = [pytest.mark.gpu, pytest.mark.workers, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def device() -> None:
    """A GPU that TVM reaches in this process; that workers do is what's tested."""
    import tvm

    if not gpu_devices() or not tvm.device(_TARGET, 0).exist:
        pytest.skip(f"there is no {_TARGET} device here")


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.onnx_convnet(tmp_path_factory.mktemp("gpu") / "net.onnx")


@pytest.mark.parametrize("setting", ["O0", "O1", "O2", "O3", "tuned"])
def test_it_answers_as_the_source(
    setting: str, net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = ["--trials", "16"] if setting == "tuned" else []
    words = ["execute", str(net), "--backend", "tvm", "--target", _TARGET, "--opt", setting, *trials]
    assert main([*words, "-q", "-o", str(tmp_path / "out")]) == 0, capsys.readouterr()
    assert "equivalent: " in capsys.readouterr().out


def test_a_build_is_made_and_looked_into(net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a name of its architecture, which the GPU says; right, so that there's nothing to repair."""
    built = tmp_path / "build"
    assert main(["build", str(net), "--target", _TARGET, "-q", "-o", str(built)]) == 0, capsys.readouterr()
    assert json.loads((built / "build.json").read_text())["options"]["target"] == _TARGET
    capsys.readouterr()
    assert main(["localize", str(net), str(built), "-q", "--samples", "3"]) == 0, capsys.readouterr()
    assert "every layer that was compared is within rounding error" in capsys.readouterr().out
    assert main(["repair", str(net), str(built), "-q", "-o", str(tmp_path / "fixed")]) == 0, capsys.readouterr()


def test_the_doctor_sees_it(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "-q", "-f", "json"])
    found = {item["what"]: item["state"] for item in json.loads(capsys.readouterr().out)}
    assert (found["gpu devices"], found["gpu driver"], found["gpu tvm"]) == ("installed", "works", "works")

"""What needs only the core: it works where no library of an extra can be imported, and tries to import none."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from crossed import slower
from two_files import check_verbs, run, save_pair

from conrepair.ground.runtime.libraries import EXTRAS

ROOT = Path(__file__).parents[2]
CONREPAIR = [sys.executable, "-m", "conrepair"]
BROUGHT = {
    "flatbuffers",
    "packaging",
    "sympy",
    "requests",
}  # by libraries of the core, or by what an installation may have besides
OPTIONAL = {module for extra in EXTRAS for module in extra.libraries} - BROUGHT

# Worker processes start with the environment of the command, so this runs in each of them.
WITHOUT_EXTRAS = """
import importlib.machinery, importlib.metadata, os, sys

wanted = os.open({log!r}, os.O_WRONLY | os.O_APPEND)  # a worker may open nothing outside of its folders later on
find = importlib.machinery.PathFinder.find_spec
described = importlib.metadata.Distribution.from_name
there = importlib.metadata.Distribution.discover
sys.meta_path[:] = [item for item in sys.meta_path if not item.__module__.startswith("__editable___conrepair_")]

def find_spec(name, path=None, target=None):
    if name not in {optional!r}:
        return find(name, path, target)
    os.write(wanted, name.encode() + bytes([10]))

def from_name(name):
    if name in {packages!r}:
        raise importlib.metadata.PackageNotFoundError(name)
    return described(name)

importlib.machinery.PathFinder.find_spec = find_spec
importlib.metadata.Distribution.from_name = from_name
hidden = {packages!r}
importlib.metadata.Distribution.discover = lambda **more: (item for item in there(**more) if item.name not in hidden)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the libraries of extras are written that something looked for."""
    path = tmp_path / "wanted.txt"
    path.touch()
    return path


@pytest.fixture
def core(tmp_path: Path, log: Path) -> Mapping[str, str]:
    """An environment in which the libraries of extras aren't installed."""
    packages = [package for extra in EXTRAS for module, package in extra.libraries.items() if module in OPTIONAL]
    folder = tmp_path / "start-up"
    folder.mkdir()
    code = WITHOUT_EXTRAS.format(optional=sorted(OPTIONAL), packages=packages, log=str(log))
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": f"{folder}:{ROOT}"}


@pytest.mark.slow
def test_what_the_verbs_say_of_two_onnx_files(tmp_path: Path, log: Path, core: Mapping[str, str]) -> None:
    check_verbs(CONREPAIR, tmp_path, core)
    assert not log.read_text()


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, ["inspect", "source.onnx"]),
        (1, ["compare", "source.onnx", "target.onnx"]),
        *slower((1, ["localize", "source.onnx", "target.onnx"])),  # repair localizes, too
        (0, ["repair", "source.onnx", "target.onnx", "-o", "repaired"]),
        (0, ["converters"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_the_verbs_of_two_onnx_files_look_for_no_library_of_an_extra(
    code: int, arguments: list[str], tmp_path: Path, log: Path, core: Mapping[str, str]
) -> None:
    save_pair(tmp_path)
    result = run(CONREPAIR, arguments, tmp_path, core)
    assert result.returncode == code, (result.stdout, result.stderr)
    assert not log.read_text()


@pytest.mark.parametrize(
    ("file", "library", "extra"),
    [
        ("net.pt2", "torch", "torch"),
        ("net.keras", "keras", "keras"),
        *slower(("net.h5", "keras", "keras")),
        ("net.pb", "tensorflow", "tensorflow"),
        ("net.tflite", "ai-edge-litert", "tflite"),
    ],
)
def test_a_format_whose_library_is_missing(
    file: str, library: str, extra: str, tmp_path: Path, log: Path, core: Mapping[str, str]
) -> None:
    (tmp_path / file).write_bytes(b"whatever is in it")
    check_missing(run(CONREPAIR, ["inspect", file, "-q"], tmp_path, core), library, extra)
    assert log.read_text()  # what is looked for is seen, in workers too


def test_a_configuration_that_needs_what_is_missing(tmp_path: Path, core: Mapping[str, str]) -> None:
    result = run(CONREPAIR, ["config", "check", str(ROOT / "config.json")], tmp_path, core)
    assert result.returncode == 2, result.stdout
    told = result.stderr.splitlines()
    assert "it can't be run as it is" in told[0]
    for library in ("torch", "ai-edge-litert", "onnx2torch"):
        assert any(f"the library {library} isn't installed" in line for line in told), result.stderr
    assert all(line.startswith("  $.models[") for line in told[1:]), result.stderr


@pytest.mark.parametrize("verb", ["localize", *slower("repair")])
def test_a_target_whose_library_is_missing(verb: str, tmp_path: Path, core: Mapping[str, str]) -> None:
    source, _ = map(str, save_pair(tmp_path))
    (tmp_path / "net.pt2").write_bytes(b"whatever is in it")
    result = run(CONREPAIR, [verb, source, "net.pt2", "-o", "out", "-q"], tmp_path, core)
    check_missing(result, "torch", "torch")


def check_missing(result: subprocess.CompletedProcess[str], library: str, extra: str) -> None:
    assert result.returncode == 2, result.stderr
    assert f"the library {library} isn't installed for {sys.executable}" in result.stderr
    assert result.stderr.endswith(f"Install it: pip install 'conrepair[{extra}]'\n")
    assert len(result.stderr.splitlines()) == 1  # no traceback


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["convert", "source.onnx", "--to", "torch", "-o", "net.pt2"], "torch"),
        *slower(
            (["convert", "source.onnx", "--to", "onnx", "--via", "onnx-onnxslim", "-o", "slim.onnx"], "simplify")
        ),
        (["build", "source.onnx", "-o", "built"], "tvm"),
    ],
)
def test_a_converter_and_a_compiler_whose_library_is_missing(
    arguments: list[str], extra: str, tmp_path: Path, core: Mapping[str, str]
) -> None:
    save_pair(tmp_path)
    result = run(CONREPAIR, [*arguments, "-q"], tmp_path, core)
    assert result.returncode == 2, result.stderr
    assert f"pip install 'conrepair[{extra}]'" in result.stderr


def test_the_doctor_of_a_core(tmp_path: Path, core: Mapping[str, str]) -> None:
    result = run(CONREPAIR, ["doctor", "-q", "-f", "json"], tmp_path, core)
    assert result.returncode == 0, result.stdout
    found = {item["what"]: item for item in json.loads(result.stdout)}
    for extra in EXTRAS:
        item = found[f"extra {extra.name}"]
        assert item["missing"]
        assert item["remedy"] == f"pip install 'conrepair[{extra.name}]'"
    assert found["onnxruntime"]["works"]
    assert "torch" not in found
    assert found["converter onnx-quantize-static"]["works"]
    assert found["converter onnx2torch"]["missing"]
    assert found["converter onnx2torch"]["remedy"] == "pip install 'conrepair[torch]'"
    assert found["backend onnxruntime"]["works"]
    assert found["backend tvm"]["missing"]

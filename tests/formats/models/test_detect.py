"""Formats are told from the path, before any framework is imported."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conrepair.formats.models.detect import detect_framework, hides_inputs, is_torchscript
from conrepair.formats.models.formats import OWN
from conrepair.formats.models.registry import framework
from conrepair.ground.runtime.errors import ExitCode, ModelLoadError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.onnx", "onnx"), ("a.ONNX", "onnx"), ("a.pt2", "torch"), ("a.pt", "torch"), ("a.pth", "torch"),
        ("a.ts", "torch"), ("a.keras", "keras"), ("a.h5", "keras"), ("a.hdf5", "keras"), ("a.pb", "tensorflow"),
        ("a.tflite", "tflite"), ("a.lite", "tflite"), ("a.b.onnx", "onnx"), ("größe 1.onnx", "onnx"),
    ],
)  # fmt: skip
def test_suffixes(tmp_path: Path, name: str, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"x")
    assert detect_framework(path) == expected


def test_saved_model_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model.onnx"  # whatever its name
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(b"x")
    assert detect_framework(folder) == "tensorflow"


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"net\.onnx: no such model file") as error:
        detect_framework(tmp_path / "net.onnx")
    assert error.value.exit_code == ExitCode.MODEL_LOAD


def test_folder_without_model(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"folder without saved_model\.pb"):
        detect_framework(tmp_path)


def test_empty(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.touch()
    with pytest.raises(ModelLoadError, match=r"net\.tflite is empty"):
        detect_framework(path)


@pytest.mark.parametrize("name", ["net.xyz", "net", "net.onnx.zip"])
def test_unknown(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"x")
    with pytest.raises(ModelLoadError) as error:
        detect_framework(path)
    assert str(path) in str(error.value)
    assert ", ".join(form.words for form in OWN.values()) in str(error.value)


@pytest.mark.parametrize(("member", "expected"), [("net/code/__torch__.py", True), ("net/data.pkl", False)])
def test_torchscript_is_told_from_a_state_dict(tmp_path: Path, member: str, expected: bool) -> None:
    path = tmp_path / "net.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, "")
    assert is_torchscript(path) is expected


@pytest.mark.parametrize("content", [b"", b"P", b"PK\x03\x04", bytes(99)])
def test_no_archive_is_no_torchscript(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(content)
    assert not is_torchscript(path)


def test_a_damaged_archive_is_no_torchscript(tmp_path: Path) -> None:
    path, damaged = tmp_path / "whole.pt", tmp_path / "damaged.pt"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("net/code/__torch__.py", "net/data.pkl"):
            archive.writestr(name, "x" * 50)
    content, generator = path.read_bytes(), random.Random(0)
    answers = set()
    for _ in range(2000):
        changed = bytearray(content)
        for _ in range(generator.choice([1, 1, 3])):
            changed[generator.randrange(len(changed) // 2, len(changed))] = generator.randrange(256)
        damaged.write_bytes(changed[: generator.choice([len(changed), generator.randrange(len(changed))])])
        answers.add(is_torchscript(damaged))
    assert answers == {True, False}


def test_pipes_and_devices_are_no_models(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.onnx")
    (tmp_path / "b.onnx").symlink_to("/dev/zero")
    for name in ("a.onnx", "b.onnx"):
        with pytest.raises(ModelLoadError, match="is a device or a pipe"):
            detect_framework(tmp_path / name)


@pytest.mark.parametrize("name", ["a\0.onnx", f"{'x' * 300}.onnx", "\ud800.onnx"])
def test_what_can_be_no_path_is_no_model(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelLoadError, match=r"no path|UTF-8"):
        detect_framework(tmp_path / name)


def test_registry_knows_all_and_refuses_others() -> None:
    assert {"torch", "keras", "tensorflow", "tflite", "onnx"} == set(OWN)
    with pytest.raises(ValueError, match="unknown framework 'caffe'"):
        framework("caffe")


def test_nothing_heavy_is_imported() -> None:
    """The main process plans conversions; only workers import frameworks."""
    script = (
        "import sys, conrepair.formats.models.detect, conrepair.formats.models.registry; "
        "import conrepair.formats.models.runnable, "
        "conrepair.formats.converters.all_converters, conrepair.formats.backends.all_backends; "
        "print(sorted({'torch', 'tensorflow', 'keras', 'onnx', 'onnxruntime'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "hidden"), [("net.pt", True), ("net.pth", True), ("net.pt2", False), ("net", False)]
)
def test_networks_that_are_pickled_say_no_inputs(name: str, hidden: bool, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"no magic")
    assert hides_inputs(path) == hidden

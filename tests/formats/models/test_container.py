"""A file is what its content says, whatever it's called and wherever its name leads."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_networks
import pytest
import small_models as small
from onnx import numpy_helper

import conrepair
from conrepair.formats.models.detect import container, detect_framework
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.path_text import model_path


def _script(path: Path) -> Path:
    import torch

    torch.jit.trace(small.torch_convnet(), torch.from_numpy(small.images())).save(path)
    return path


def _pickled(path: Path) -> Path:
    import torch

    torch.save(small.torch_convnet().state_dict(), path)
    return path


def _keras(path: Path) -> Path:
    small.keras_convnet().save(path)
    return path


def _exported(path: Path) -> Path:
    import torch

    return small.export_pt2(small.torch_convnet(), (torch.from_numpy(small.images()),), path, dynamic=False)


WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    ".onnx": ("onnx", onnx_networks.residual),
    ".pt2": ("torch", _exported),
    ".pt": ("torch", _script),
    ".keras": ("keras", _keras),
    ".h5": ("keras", _keras),
    ".tflite": ("tflite", lambda path: small.tflite_of(small.keras_convnet(), path)),
    ".pb": ("tensorflow", small.freeze_session),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    for suffix, (_, write) in WRITERS.items():
        write(folder / f"net{suffix}")
    return {suffix: folder / f"net{suffix}" for suffix in WRITERS}


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("name", ["blob", "net.v2", "NET.BIN", "other.onnx", "other.h5"])
def test_content_decides(suffix: str, name: str, files: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copy(files[suffix], tmp_path / name)
    assert container(Path(copy)) == suffix
    assert detect_framework(Path(copy)) == WRITERS[suffix][0]


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_file_without_a_name_of_its_own_is_loaded(suffix: str, files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    blob = shutil.copy(files[suffix], tmp_path / "blobs" / "4a1f")
    link = tmp_path / f"model{suffix.upper()}"
    link.symlink_to(blob)
    more = {"inputs": [",".join(map(str, small.images().shape))]} if suffix == ".pt" else {}
    own, theirs = (conrepair.inspect(path, in_process=True, **more) for path in (files[suffix], link))
    assert own.operators == theirs.operators
    assert model_path(link).name == link.name


def test_a_state_dict_is_pytorch_s(tmp_path: Path) -> None:
    assert container(_pickled(tmp_path / "weights")) == ".pt"


def test_what_content_does_not_say_the_name_does(tmp_path: Path) -> None:
    for name in ("net.tflite", "net.ONNX", "net.pt2"):
        (tmp_path / name).write_bytes(b"\x00 damaged")
        assert container(tmp_path / name) == Path(name).suffix.lower()
    (tmp_path / "net").write_bytes(b"\x00 damaged")
    assert container(tmp_path / "net") == ""
    assert container(tmp_path / "gone.onnx") == ".onnx"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("net.onnx", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n", "git lfs pull"),
        ("net.onnx", b"\n<!DOCTYPE html>\n<html><body>Sign in</body></html>", "a web page"),
        ("net.pt", b"<html>", "a web page"),
        ("net.gguf", b"GGUF\x03\x00\x00\x00", "llama.cpp"),
        ("net", b"GGUF\x03\x00\x00\x00", "llama.cpp"),
        ("net.pte", b"\x1c\x00\x00\x00ET12", "ExecuTorch"),
        ("net.ort", b"\x1c\x00\x00\x00ORTM", "ONNX Runtime's own format"),
        ("net.engine", b"ftrt\x00\x00", "TensorRT"),
        ("net.plan", b"\x00\x01", "TensorRT"),
        ("net.mlmodel", b"\x08\x04", "Core ML"),
        ("x.npy", b"\x93NUMPY\x01\x00", "--data"),
        ("x.npz", b"PK\x03\x04", "as recorded outputs"),
        ("net.xml", b'<?xml version="1.0"?>\n<net name="a" version="11">', "OpenVINO"),
        ("model.json", json.dumps({"format": "graph-model", "modelTopology": {}}).encode(), "TensorFlow.js"),
    ],
)
def test_what_nothing_here_reads_is_called_what_it_is(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelLoadError, match=said):
        detect_framework(tmp_path / name)


def test_weights_without_a_graph(tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    content = len(header).to_bytes(8, "little") + header + bytes(4)
    for name in ("net.safetensors", "pytorch_model"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelLoadError, match="weights without a graph"):
            detect_framework(tmp_path / name)
    (tmp_path / "net.mlpackage").mkdir()
    with pytest.raises(ModelLoadError, match="Core ML"):
        detect_framework(tmp_path / "net.mlpackage")


def test_an_archive_of_something_else_is_nothing(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert container(tmp_path / "a") == ""


def test_data_behind_links_are_told(tmp_path: Path) -> None:
    """A hub's cache with weights beside the model: ONNX's libraries follow no links."""
    path = onnx_networks.written(
        tmp_path / "in.onnx",
        "g (float[n, 40] x) => (float[n, 30] y) { y = MatMul (x, w) }",
        {"w": np.ones((40, 30), np.float32)},
    )
    model = onnx.load(path)
    assert numpy_helper.to_array(model.graph.initializer[0]).size == 1200
    (tmp_path / "blobs").mkdir()
    onnx.save(model, tmp_path / "blobs" / "a", save_as_external_data=True, location="model.data", size_threshold=8)
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "model.onnx").symlink_to(tmp_path / "blobs" / "a")
    (tmp_path / "hub" / "model.data").symlink_to(tmp_path / "blobs" / "model.data")
    with pytest.raises(conrepair.ConrepairError, match=r"cp -rL"):
        conrepair.inspect(tmp_path / "hub" / "model.onnx", in_process=True)
    shutil.copytree(tmp_path / "hub", tmp_path / "copy")
    assert conrepair.inspect(tmp_path / "copy" / "model.onnx", in_process=True).parameters == 1200

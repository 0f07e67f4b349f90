"""Tell what a model is by its content, without importing any framework: a name says nothing in a hub's cache."""

from __future__ import annotations

import functools
import os
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from conrepair.formats.models.formats import BY_SUFFIX, FORMATS, RECORDED
from conrepair.ground.data.recorded import is_recorded
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.path_text import path_problem

_SILENT = {suffix for suffix, name in BY_SUFFIX.items() if name == "torch"} - {".pt2"}
_HEAD = 512  # bytes that tell most formats
_FIELDS = 64  # of a protobuf message, at most so many are looked at
_TOO_LARGE = 1 << 62
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_GRAPH = 7  # of onnx.ModelProto
_ONNX = {1: _VARINT, 2: _BYTES, 3: _BYTES, 4: _BYTES, 5: _VARINT, 6: _BYTES, _GRAPH: _BYTES, 8: _BYTES, 14: _BYTES}
_GRAPHDEF = {1: _BYTES, 2: _BYTES, 3: _VARINT, 4: _BYTES, 5: _BYTES}

_ORIGINAL = (
    "Compare outputs recorded where it runs (`conrepair inputs` writes inputs for it); or give the original model."
)
_WEB = "a web page: a download that needs to be logged in, or another address, gives one. Fetch it anew."
_TENSORRT = f"an engine of TensorRT, which runs on the GPU that it was built for alone. {_ORIGINAL}"
_GGUF = f"GGUF, of llama.cpp, which holds weights without a graph. {_ORIGINAL}"
_FOREIGN: tuple[tuple[int, bytes, str], ...] = (
    (
        0,
        b"version https://git-lfs.github.com/spec/",
        "a pointer of Git LFS, not the file itself. Run `git lfs pull`.",
    ),
    (0, b"GGUF", _GGUF),
    (4, b"ET12", f"an ExecuTorch program (.pte). {_ORIGINAL}"),
    (4, b"ORTM", f"ONNX Runtime's own format (.ort), which is optimized for one release of it. {_ORIGINAL}"),
    (0, b"ftrt", _TENSORRT),
    (0, b"PAR1", "a table (Parquet). Give a model."),
    (0, b"%PDF", "a PDF. Give a model."),
)
_TEXTS: tuple[tuple[bytes, str], ...] = (
    (b"<!doctype html", _WEB),
    (b"<html", _WEB),
    (b"<net ", f"a network of OpenVINO (.xml). {_ORIGINAL}"),
)
_SUFFIXES: Mapping[str, str] = {
    ".safetensors": "weights without a graph (safetensors). Load them into their network, and give that: the object "
    "from Python, or its export (torch.export, ONNX).",
    ".mlpackage": f"a model of Core ML. {_ORIGINAL}",
    ".mlmodel": f"a model of Core ML. {_ORIGINAL}",
    ".mlmodelc": f"a compiled model of Core ML. {_ORIGINAL}",
    ".engine": _TENSORRT,
    ".plan": _TENSORRT,
    ".pte": f"an ExecuTorch program. {_ORIGINAL}",
    ".ptl": f"a program of PyTorch Mobile. {_ORIGINAL}",
    ".gguf": _GGUF,
    ".ckpt": "a checkpoint, which holds weights without a graph. Load it into its network, and export that.",
}


def detect_framework(path: Path, *, recorded: bool = False) -> str:
    """Name the framework that a model file or folder belongs to.

    Args:
        path: A file, or a SavedModel folder.
        recorded: Whether outputs that were computed elsewhere will do: `RECORDED`.

    Raises:
        ModelLoadError: if it doesn't exist, is empty, or isn't recognised.
    """
    if problem := path_problem(str(path)):
        raise ModelLoadError(problem)
    if not path.exists():
        raise ModelLoadError(f"{path}: no such model file. Check the path.")
    if is_recorded(path):
        if recorded:
            return RECORDED
        raise ModelLoadError(
            f"{path} holds arrays of NumPy. `compare` and `localize` take them as recorded outputs; here a model "
            "is needed. Inputs of a model are given as its data (--data)."
        )
    if not path.is_file() and not path.is_dir():
        raise ModelLoadError(f"{path} is a device or a pipe. Copy the model into a file.")
    if path.is_file() and path.stat().st_size == 0:
        raise ModelLoadError(f"{path} is empty. Export or copy the model again.")
    other, own = _foreign(path), _own(path)
    if own and not other:
        return own
    if name := of_plugin(path):
        return name
    if other:
        raise ModelLoadError(f"{path} is {other}")
    if path.is_dir():
        raise ModelLoadError(
            f"{path} is a folder without saved_model.pb, so it's no SavedModel. Give the folder that holds "
            "saved_model.pb, or a model file."
        )
    known = ", ".join(form.words for form in FORMATS.values())
    raise ModelLoadError(f"{path}: unknown model format '{path.suffix}'. Known: {known}.")


def _own(path: Path) -> str:
    """The format of ours that a file or folder is of; "" for none."""
    if path.is_dir():
        return "tensorflow" if (path / "saved_model.pb").is_file() else ""
    return BY_SUFFIX.get(container(path), "")


def of_plugin(path: Path) -> str:
    """The format of a plug-in that a file or folder is of which is of none of ours; "" for none."""
    return next((name for name, form in FORMATS.items() if form.recognizes(path)), "")


def detect_suffix(path: Path) -> str:
    """Name the framework whose models have the suffix of `path`.

    Raises:
        KeyError: if no format has it.
    """
    return BY_SUFFIX[path.suffix.lower()]


def is_torchscript(path: Path) -> bool:
    """Whether a file is a TorchScript archive (and not a pickled state dict, nor a damaged archive)."""
    return any("/code/" in f"/{name}" for name in _members(path))


def hides_inputs(path: Path) -> bool:
    """Whether a file doesn't say what its inputs are: TorchScript, a pickled network."""
    return path.is_file() and (container(path) or ".pt2") in _SILENT


def container(path: Path) -> str:
    """The suffix that files of a file's format usually have, whatever its name is.

    Args:
        path: A file.

    Returns:
        One of `BY_SUFFIX`, in small letters: by the content, else by the name; "" where neither says it, and for a
        folder.
    """
    try:
        status = path.stat()
    except (OSError, ValueError):
        return _by_name(path)
    return _container(path, status.st_mtime_ns, status.st_size, status.st_ino)


@functools.lru_cache(maxsize=256)
def _container(path: Path, *_: int) -> str:
    if not path.is_file():
        return ""
    try:
        return _by_content(path) or _by_name(path)
    except OSError:
        return _by_name(path)


def _by_name(path: Path) -> str:
    suffix = path.suffix.lower()
    return suffix if suffix in BY_SUFFIX else ""


def _by_content(path: Path) -> str:
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if head[4:8] == b"TFL3":
        return ".tflite"
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return ".h5"
    if head.startswith(b"PK\x03\x04"):
        return _of_archive(_members(path))
    if head.startswith(b"\x80") and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return ".pt"  # a pickle, as PyTorch wrote them before it wrote archives
    return _of_message(path)


def _of_archive(names: tuple[str, ...]) -> str:
    inside = {name.partition("/")[2] for name in names} | set(names)
    if "config.json" in names and any(name.startswith("model.weights") for name in names):
        return ".keras"
    if any(name.startswith("code/") for name in inside):
        return ".pt"
    if "archive_format" in inside or any(name.startswith("serialized_exported_program") for name in inside):
        return ".pt2"
    return ".pt" if "data.pkl" in inside else ""


def _members(path: Path) -> tuple[str, ...]:
    """Names of what is in an archive; none where it's none, or can't be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, OverflowError, struct.error):
        return ()  # what reads it as a model says why it can't be


def _of_message(path: Path) -> str:
    """Of protobuf messages: an ONNX model has a graph, a frozen TensorFlow graph begins with a node."""
    fields = _fields(path)
    if fields and all(_ONNX.get(number) == wire for number, wire in fields) and (_GRAPH, _BYTES) in fields:
        return ".onnx"
    if fields[:1] == [(1, _BYTES)] and all(_GRAPHDEF.get(number) == wire for number, wire in fields):
        return ".pb"
    return ""


def _fields(path: Path) -> list[tuple[int, int]]:
    """Numbers and wire types of a message's first fields; none where one isn't of a message, or leaves the file."""
    size = path.stat().st_size
    found: list[tuple[int, int]] = []
    with path.open("rb") as stream:
        while stream.tell() < size and len(found) < _FIELDS:
            number, wire = divmod(_varint(stream), 8)
            if wire == _BYTES:
                stream.seek(_varint(stream), os.SEEK_CUR)
            elif wire == _VARINT:
                _varint(stream)
            else:
                stream.seek({_FIXED64: 8, _FIXED32: 4}.get(wire, size + 1), os.SEEK_CUR)
            found.append((number, wire))
        return found if stream.tell() <= size else []


def _varint(stream: BinaryIO) -> int:
    """A number of variable length; one that is too large for any file where there's none."""
    value = 0
    for place in range(10):
        byte = stream.read(1)
        if not byte:
            break
        value |= (byte[0] & 0x7F) << 7 * place
        if byte[0] < 0x80:
            return min(value, _TOO_LARGE)
    return _TOO_LARGE


def _foreign(path: Path) -> str | None:
    """What a file or folder is that nothing here reads, and what to do; None where it isn't known.

    Args:
        path: That is there.
    """
    if path.is_file():
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
        for place, magic, words in _FOREIGN:
            if head[place:].startswith(magic):
                return words
        text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        for start, words in _TEXTS:
            if text.startswith(start) or (text.startswith(b"<?xml") and start in text):
                return words
        if (text.startswith(b"{") and b'"modeltopology"' in text) or b'"weightsmanifest"' in text:
            return f"a model of TensorFlow.js. {_ORIGINAL}"
        if len(head) > 9 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < path.stat().st_size:
            return _SUFFIXES[".safetensors"]
    return _SUFFIXES.get(path.suffix.lower())

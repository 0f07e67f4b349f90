"""Which files a model consists of, their common hash, and copies of all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conrepair.formats.models.detect import container, of_plugin
from conrepair.formats.models.formats import FORMATS
from conrepair.formats.onnx.load.proto_file import inner_graphs, read_proto
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.files.whole import copy_whole, sha256_of, whole_output
from conrepair.ground.runtime.handing_on import Recent
from conrepair.ground.runtime.path_text import path_problem, real_path

_READ_SOON = 1 << 20  # bytes of a file that is read for a word
_LOCATION = b"location"  # what a tensor calls the name of the file that it's in
_NAMES: Recent[list[str]] = Recent(1 << 40)  # no more than a few texts of each file


def model_files(path: Path) -> tuple[Path, ...]:
    """The model's file or folder, then the files that hold an ONNX model's external data.

    Data outside the model's folder aren't listed (no runtime reads them), nor are those of a file that can't be
    loaded, nor what can't be the path of anything.
    """
    if not path.is_file() or container(path) != ".onnx":
        own = container(path) or not path.exists() or (path / "saved_model.pb").is_file()
        other = "" if own else of_plugin(path)
        return (path, *(FORMATS[other].files(path) if other else ()))
    names = _NAMES.of(path, "", lambda: _outside(path))
    # In a hub's cache both are links to files that lie in one other folder.
    folders = {real_path(path.parent), real_path(path).parent}
    found = [path.parent / name for name in names if any(map(real_path(path.parent / name).is_relative_to, folders))]
    return (path, *(file for file in found if file.is_file()))


def _outside(path: Path) -> list[str]:
    """The files that an ONNX file says its tensors are in."""
    if path.stat().st_size <= _READ_SOON and _LOCATION not in path.read_bytes():
        return []  # told without the libraries that take it apart, which take a while to import
    from google.protobuf.message import DecodeError

    from conrepair.formats.onnx.load.light import read_light

    try:
        proto, _ = read_light(path)
    except (DecodeError, ValueError, ModelLoadError):
        return []
    return sorted(
        {
            entry.value
            for tensor in model_tensors(proto)
            for entry in tensor.external_data
            # A text that isn't UTF-8 is given as bytes.
            if entry.key == "location" and isinstance(entry.value, str) and not path_problem(entry.value)
        }
    )


def model_bytes(path: Path) -> int:
    """How much everything has that a model consists of."""
    found = (item for part in model_files(path) for item in (part, *part.rglob("*")))
    return sum(item.stat().st_size for item in found if item.is_file())


def model_sha256(path: Path) -> str:
    """Hash everything that a model consists of."""
    files = model_files(path)
    if len(files) == 1:
        return sha256_of(path)
    return hashlib.sha256("".join(sha256_of(file) for file in files).encode()).hexdigest()


def copy_model(path: Path, destination: Path) -> None:
    """Copy a model; external data go beside the copy under their own names, which the model refers to."""
    main, *others = model_files(path)
    for file in others:
        copy_whole(file, destination.parent / file.relative_to(path.parent))
    copy_whole(main, destination)


def move_model(path: Path, folder: Path) -> Path:
    """Move a model to another folder of the same disk, where nothing has its names; returns where it's then."""
    files = model_files(path)
    for file in files:
        place = folder / file.relative_to(path.parent)
        place.parent.mkdir(parents=True, exist_ok=True)
        file.rename(place)
    return folder / path.name


def place_model(path: Path, destination: Path) -> None:
    """Copy a model under a name of its own; external data go beside it as `<name>.data`.

    Args:
        path: The model.
        destination: Of its main file, in a folder that nobody else writes to.
    """
    main, *others = model_files(path)
    if container(path) != ".onnx":  # the others are called as it is, but for their suffixes
        for file in others:
            copy_whole(file, destination.with_name(destination.stem + file.name.removeprefix(path.stem)))
    if not others or container(path) != ".onnx":
        return copy_whole(main, destination)
    names = {
        file.relative_to(path.parent).as_posix(): f"{destination.name}.data{index or ''}"
        for index, file in enumerate(others)
    }
    proto = read_proto(main)
    for tensor in model_tensors(proto):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = names[Path(entry.value).as_posix()]
    for file in others:
        copy_whole(file, destination.parent / names[file.relative_to(path.parent).as_posix()])
    with whole_output(destination) as temporary:
        temporary.write_bytes(proto.SerializeToString())
    return None


def model_tensors(proto: Any) -> Iterator[Any]:
    """All tensors that a ModelProto holds, those of its own functions, too."""
    for part in (proto.graph, *proto.functions):
        yield from onnx_tensors(part)


def onnx_tensors(graph: Any) -> Iterator[Any]:
    """All tensors that a GraphProto or a FunctionProto holds: initializers, constants, and those of subgraphs."""
    yield from getattr(graph, "initializer", ())
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for subgraph in inner_graphs(node):
            yield from onnx_tensors(subgraph)

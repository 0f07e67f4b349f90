"""Which files a model consists of, their common hash, and copies of all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conrepair.runtime.files import copy_whole, sha256_of

__all__ = ["copy_model", "model_files", "model_sha256", "onnx_tensors"]


def model_files(path: Path) -> tuple[Path, ...]:
    """The model's file or folder, then the files that hold an ONNX model's external data.

    Data outside the model's folder aren't listed (no runtime reads them), nor are those of a damaged file.
    """
    if path.suffix.lower() != ".onnx" or not path.is_file():
        return (path,)
    import onnx
    from google.protobuf.message import DecodeError

    try:
        proto = onnx.load(path, load_external_data=False)
    except (DecodeError, ValueError):
        return (path,)
    names = sorted(
        {
            entry.value
            for tensor in onnx_tensors(proto.graph)
            for entry in tensor.external_data
            if entry.key == "location"
        }
    )
    folder = path.parent.resolve()
    found = [path.parent / name for name in names if (folder / name).resolve().is_relative_to(folder)]
    return (path, *(file for file in found if file.is_file()))


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


def onnx_tensors(graph: Any) -> Iterator[Any]:
    """All tensors that a GraphProto holds: initializers, constants, and those of subgraphs."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            for subgraph in [attribute.g, *attribute.graphs]:
                yield from onnx_tensors(subgraph)

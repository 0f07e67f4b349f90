"""ONNX: operators of other domains, and versions that came later than the runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx

from conrepair.formats.models.identity import model_tensors
from conrepair.formats.models.model import Model
from conrepair.formats.models.outline import Outline, lacking
from conrepair.formats.models.runnable import loading
from conrepair.formats.onnx.load.file import describe_proto, nodes_of, read_valid, specs_of_proto
from conrepair.formats.onnx.load.proto_file import ONNX_DOMAIN, read_proto
from conrepair.formats.onnx.load.readable import NotReadableError, as_read
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.path_text import path_problem
from conrepair.ground.runtime.words import shortened

_OF_DATA = {".data", ".bin", ".weights", ".weight", ".onnx_data"}
_MOST = 4


def outline(model: Model) -> Outline:
    """See `conrepair.formats.models.outline.outline`."""
    proto = read_proto(model.path)
    if not proto.graph.output:
        raise ValueError("it has no outputs")
    description = describe_proto(proto, *specs_of_proto(proto))
    words = "the operators {} aren't ONNX's nor ONNX Runtime's; export without them, or as functions in the file"
    missing = [*lacking(_unknown(proto), words), *_without_data(Path(model.path), proto)]
    try:
        as_read(proto)
    except NotReadableError as error:
        missing.append(str(error))
    return Outline(description, tuple(missing))


def check(model: Model, found: Outline | None) -> None:
    """Refuse what ONNX's own rules forbid, and what nothing here can run; only running it shows what else there is.

    Args:
        model: The file.
        found: What could be read of it.

    Raises:
        ModelLoadError: if so.
    """
    read_valid(model)
    if found is None:
        with loading(model, "an ONNX model"):
            outline(model)
        return
    if found.missing:
        raise ModelLoadError(f"{model.path} can't be loaded as an ONNX model: {'; '.join(found.missing)}.")


def _without_data(path: Path, proto: onnx.ModelProto) -> Iterator[str]:
    """Files that weights are in and that aren't there, with what lies there in their place."""
    entries = [entry for tensor in model_tensors(proto) for entry in tensor.external_data]
    names = dict.fromkeys(entry.value for entry in entries if entry.key == "location")
    absent = [
        name for name in names if isinstance(name, str) and not path_problem(name) and not _is_there(path, name)
    ]
    if not absent:
        return
    needed = {path, *(path.parent / name for name in names if name not in absent)}
    others = sorted(item.name for item in path.parent.iterdir() if item.is_file() and item not in needed)
    others.sort(key=lambda name: Path(name).suffix not in _OF_DATA)
    shown = ", ".join([*others[:_MOST], *([f"{len(others) - _MOST} more"] if len(others) > _MOST else [])])
    beside = (
        f"beside it: {shown}. If its weights are in one of these, give that this name" if others else "it's alone"
    )
    for name in absent:
        yield (
            f"its weights are in a file of their own, which it calls {shortened(name, 80)} and which isn't there "
            f"({beside}; else export it again, or fetch that file too)"
        )


def _is_there(path: Path, name: str) -> bool:
    return (path.parent / name).exists()


def _unknown(proto: onnx.ModelProto) -> list[str]:
    """Nodes whose operators neither the file nor ONNX nor ONNX Runtime has."""
    own = {(function.domain, function.name) for function in proto.functions}
    nodes = [("" if node.domain in ONNX_DOMAIN else node.domain, node.op_type) for node in nodes_of(proto.graph)]
    unknown = [node for node in nodes if node not in own and not onnx.defs.has(node[1], node[0])]
    if unknown:
        known = _known_to_runtime()
        unknown = [node for node in unknown if node not in known]
    return [f"{domain}:{operator}" if domain else operator for domain, operator in unknown]


def _known_to_runtime() -> set[tuple[str, str]]:
    """Domain and name of every operator that ONNX Runtime has."""
    from onnxruntime.capi import onnxruntime_pybind11_state as runtime

    schemas = runtime.get_all_operator_schema()
    return {("" if schema.domain in ONNX_DOMAIN else schema.domain, schema.name) for schema in schemas}

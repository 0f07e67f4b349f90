"""An ONNX model as the installed ONNX Runtime reads it: of versions that it knows, with sizes that say nothing open.

The onnx package writes versions that ONNX Runtime doesn't read yet. Most models use nothing of what they brought.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from conrepair.formats.models.identity import copy_model
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.load.file import nodes_of
from conrepair.formats.onnx.load.proto_file import ONNX_DOMAIN, opset_of, read_proto
from conrepair.ground.runtime.onnx_session import open_session

_LEAST = (10, 21)  # IR version and opset that any ONNX Runtime that conrepair runs with reads


class NotReadableError(ValueError):
    """A model that uses what the installed ONNX Runtime doesn't have."""


@functools.cache
def newest_read() -> tuple[int, int]:
    """The newest IR version, and the newest opset of the default domain, that the installed ONNX Runtime reads."""
    version = max(range(_LEAST[0], onnx.IR_VERSION + 1), key=lambda number: number * _is_read(number, _LEAST[1]))
    newest = onnx.defs.onnx_opset_version()
    return version, max(range(_LEAST[1], newest + 1), key=lambda number: number * _is_read(_LEAST[0], number))


def as_read(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The same model, in place where that does, for ONNX Runtime and the tools that come with it.

    Args:
        proto: Of a file; it may have external data.

    Raises:
        NotReadableError: if it needs what is newer.
    """
    _open_sizes(proto.graph)
    opset = opset_of(proto) or 1
    if proto.ir_version <= _LEAST[0] and opset <= _LEAST[1]:
        return proto
    for what, own, known in (
        ("IR version", proto.ir_version, onnx.IR_VERSION),
        ("opset", opset, onnx.defs.onnx_opset_version()),
    ):
        if own > known:
            raise NotReadableError(
                f"its {what} {own} is newer than the {known} known here; export it with a lower one"
            )
    version, newest = newest_read()
    if opset > newest:
        proto = _lowered(proto, opset, newest)
    proto.ir_version = min(proto.ir_version, version)
    return proto


@contextlib.contextmanager
def read_copy(model: Model) -> Iterator[Model]:
    """An ONNX model for tools that read its file: itself, or a copy as `as_read` has it, gone behind the block.

    Raises:
        NotReadableError: as `as_read` does.
    """
    path = Path(model.path)
    proto = read_proto(path)
    before = _head(proto)
    read = as_read(proto)
    if _head(read) == before:
        yield model
        return
    with tempfile.TemporaryDirectory(prefix="conrepair-") as folder:
        copy = Path(folder) / path.name
        copy_model(path, copy)
        copy.write_bytes(read.SerializeToString())
        yield replace(model, path=str(copy))


def _head(proto: onnx.ModelProto) -> bytes:
    """What `as_read` may change besides nodes: those it leaves where it leaves this."""
    values = [value.SerializeToString() for value in (*proto.graph.input, *proto.graph.output)]
    return b"".join([bytes([proto.ir_version % 256, (opset_of(proto) or 1) % 256]), *values])


def _is_read(version: int, opset: int) -> bool:
    text = (
        f'<ir_version: {version}, opset_import: ["" : {opset}]> probe (float[1] x) => (float[1] y) {{ y = Neg (x) }}'
    )
    try:
        open_session(onnx.parser.parse_model(text).SerializeToString(), threads=1, quiet=True)
    # onnxruntime raises one class per status code, without a common base of their own.
    except Exception:  # noqa: BLE001
        return False
    return True


def _lowered(proto: onnx.ModelProto, opset: int, newest: int) -> onnx.ModelProto:
    """A model of a lower opset: the number alone, where each operator is what it was."""
    imports = [imported for item in (proto, *proto.functions) for imported in item.opset_import]
    nodes = (node for part in (proto.graph, *proto.functions) for node in nodes_of(part))
    changed = sorted({node.op_type for node in nodes if _changed(node, opset, newest)})
    if not changed:
        for item in imports:
            item.version = min(item.version, newest) if item.domain in ONNX_DOMAIN else item.version
        return proto
    try:
        if proto.functions:
            raise NotReadableError("the file has functions of its own, which onnx.version_converter doesn't take")
        lowered: onnx.ModelProto = onnx.version_converter.convert_version(proto, newest)
    # The converter's, and what its C++ side makes of assertions.
    except Exception as error:
        reason = str(error).rpartition("failed: ")[2].strip().partition("\n")[0].rstrip(".")
        raise NotReadableError(
            f"its opset {opset} is newer than the {newest} that the installed ONNX Runtime reads, and it can't be "
            f"lowered for {', '.join(changed)} ({reason}). Export it with opset {newest}, or install a newer "
            "onnxruntime"
        ) from error
    return lowered


def _changed(node: onnx.NodeProto, one: int, two: int) -> bool:
    """Whether an operator of ONNX's is another in two opsets."""
    if node.domain not in ONNX_DOMAIN:
        return False
    return _since(node.op_type, one) != _since(node.op_type, two)


def _since(operator: str, opset: int) -> int | None:
    try:
        return int(onnx.defs.get_schema(operator, opset, "").since_version)
    except onnx.defs.SchemaError:
        return None


def _open_sizes(graph: onnx.GraphProto) -> None:
    """Leave sizes open that no tensor of numbers has, which some exporters write for those that they don't know."""
    stored = {tensor.name for tensor in graph.initializer}
    values: list[Any] = [value for value in (*graph.input, *graph.output) if value.name not in stored]
    if any(dim.dim_value <= 0 and dim.HasField("dim_value") for value in values for dim in _dims(value)):
        for value in (*values, *graph.value_info):
            for dim in _dims(value):
                if dim.dim_value <= 0 and dim.HasField("dim_value"):
                    dim.ClearField("dim_value")


def _dims(value: Any) -> Any:
    return value.type.tensor_type.shape.dim

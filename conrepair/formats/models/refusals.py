"""What ONNX Runtime refuses of a file that can be read: which operator, of which type, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from conrepair.formats.models.model import Model
from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.ground.runtime.errors import ModelLoadError

_NO_KERNEL = re.compile(r"Could not find an implementation for (\w+)\(\d+\) node with name '([^']*)'")
_NO_TYPE = re.compile(r"MLDataType for: tensor\((\w+)\)|Type 'tensor\((complex\w+)\)' of input parameter")
_NO_LOCALE = re.compile(r"Failed to construct locale with name:\s*([\w.@-]+?)(?::|\s|$)")
_WIDER = "Convert it to float32 (or float16) there, or export the model without that type"


def refusal(model: Model, message: str) -> str | None:
    """Why a file can't be run.

    Args:
        model: The file.
        message: Its library's.

    Returns:
        None where that message is all that's known.
    """
    if model.framework != "onnx":
        return None
    if found := _NO_LOCALE.search(message):
        return (
            f"its StringNormalizer needs the locale {found[1]}, which this system doesn't have. Install it (Debian: "
            f"`apt install locales`, then `localedef -i {found[1].partition('.')[0]} -f UTF-8 {found[1]}`)"
        )
    if found := _NO_TYPE.search(message):
        kind = found[1] or found[2]
        return f"ONNX Runtime has no tensors of {kind}. {_WIDER}"
    found = _NO_KERNEL.search(message)
    if found is None:
        return _form(Path(model.path))
    operator, name = found.groups()
    types = sorted(set(_types(Path(model.path), operator, name)))
    of = f" of {' and '.join(types)}" if types else ""
    where = f" (`{name}`)" if name else ""
    what = _WIDER if types else "Export it otherwise"
    return f"ONNX Runtime has no kernel for {operator}{of} on the CPU{where}. {what}"


def _form(path: Path) -> str | None:
    """What alone is wrong with how a file is written, and that a repair writes it anew."""
    from conrepair.formats.onnx.load.well_formed import make_well_formed

    try:
        changes = make_well_formed(read_proto(path))
    except ModelLoadError as error:
        return str(error).rstrip(".")
    return f"`conrepair repair SOURCE {path.name}` writes a copy: {'; '.join(changes)}" if changes else None


def _types(path: Path, operator: str, name: str) -> Iterator[str]:
    """The element types that such a node reads, and gives where it has to say it."""
    import onnx

    proto = onnx.shape_inference.infer_shapes(read_proto(path))
    graph = proto.graph
    known = {
        value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info, *graph.output)
    }
    known |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == operator and node.name == name:
            for item in (*node.input[:1], *node.output[:1]):
                if known.get(item):
                    yield str(onnx.TensorProto.DataType.Name(known[item])).lower()

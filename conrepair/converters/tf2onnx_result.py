"""Check and save what tf2onnx made: it leaves TensorFlow operators in the graph that it couldn't convert."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conrepair.runtime.errors import ConversionError

__all__ = ["save"]

_FILE = "model.onnx"


def save(proto: Any, folder: Path) -> str:
    """Write the model if every operator of it is ONNX's.

    Raises:
        ConversionError: naming the operators that were left over.
    """
    import onnx

    opsets = {item.domain: item.version for item in proto.opset_import}
    foreign = set()
    for node in proto.graph.node:
        try:
            onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
        except onnx.defs.SchemaError:
            foreign.add(f"{node.op_type} ('{node.name}')")
    if foreign:
        raise ConversionError(
            f"tf2onnx could not convert {', '.join(sorted(foreign))}: ONNX opset {opsets.get('')} doesn't have it. "
            "Try a higher opset (option `opset`), or another route."
        )
    onnx.save(proto, folder / _FILE)
    return _FILE

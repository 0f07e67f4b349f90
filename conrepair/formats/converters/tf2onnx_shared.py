"""What converters by tf2onnx share: less memory for it, and a look at what it made.

It copies the whole graph for every optimizer of every round, and leaves TensorFlow operators in the graph that it
couldn't convert.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.errors import ConversionError

_ERFC = "Erfc"
_FILE = "model.onnx"
_THRESHOLDS = 100, 2, 2


@contextlib.contextmanager
def collecting_often() -> Iterator[None]:
    """Collect garbage soon, until this is left.

    A graph and its nodes refer to one another, so that only the collector frees a copy; and Python puts off a full
    collection while few objects are new, however many bytes hang on them. Objects that exist already are left out
    of these collections, which makes them cheap. ResNet101: 4.3 GiB at most instead of 11, in the same time.
    What somebody else has left out before stays so.
    """
    thresholds, left_out = gc.get_threshold(), gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    gc.collect()  # a full collection waits until a quarter as many objects are new as the last one left
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        if not left_out:
            gc.unfreeze()


def save(proto: Any, folder: Path) -> str:
    """Write the model if every operator of it is ONNX's.

    Raises:
        ConversionError: naming the operators that were left over.
    """
    import onnx

    proto = _without_erfc(proto)
    opsets = {item.domain: item.version for item in proto.opset_import}
    foreign: dict[str, list[str]] = {}
    for node in proto.graph.node:
        try:
            onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
        except onnx.defs.SchemaError:
            foreign.setdefault(node.op_type, []).append(node.name)
    if len(foreign) > 1:
        foreign.pop(_ERFC, None)  # it would have been written out, had the others not left its type unknown
    if foreign:
        found = [f"{name} ('{nodes[0]}'{_and_others(nodes)})" for name, nodes in sorted(foreign.items())]
        raise ConversionError(
            f"tf2onnx could not convert {', '.join(found)}: ONNX opset {opsets.get('')} doesn't have it. "
            "Try a higher opset (option `opset`), or another route."
        )
    onnx.save(proto, folder / _FILE)
    return _FILE


def _and_others(nodes: Sequence[str]) -> str:
    return f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""


def _without_erfc(proto: Any) -> Any:
    """Write erfc(x), which Keras's GELU is made of and ONNX doesn't have, as 1 - erf(x)."""
    import onnx_ir

    from conrepair.ground.equations.matching import Match
    from conrepair.ground.equations.writing import written
    from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes

    if all(node.op_type != _ERFC for node in proto.graph.node):
        return proto
    model = onnx_ir.from_proto(proto)
    nodes = [node for node in model.graph if node.op_type == _ERFC]
    for node in nodes:
        node.op_type = "Erf"
    infer_shapes(model)
    for node in nodes:
        if node.outputs[0].dtype is None:  # another operator wasn't converted, which is reported with this one
            node.op_type = _ERFC
        else:
            written("1 - Erf(x)", Match({"x": node.inputs[0]}, {}, (node,)), model.opset_imports[""])
    return onnx_ir.to_proto(model)

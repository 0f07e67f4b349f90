"""What a repair makes of a target's storage: how many weights stay quantized, and the file's size."""

from __future__ import annotations

from pathlib import Path

from conrepair.diagnosis.repairs.outcomes import Storage
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import NotEditableError
from conrepair.formats.models.identity import model_bytes
from conrepair.formats.models.model import Model
from conrepair.ground.graph.layer_graph import LayerGraph
from conrepair.ground.runtime.errors import ConrepairError

_MOST_BITS = 16
_WHOLE = {"int8", "uint8", "int4", "uint4"}


def storage_of(graph: LayerGraph, before: Model, after: Model) -> Storage | None:
    """Compare the files of two models of one format.

    Args:
        graph: Of the target.
        before: The target.
        after: Its repaired copy.

    Returns:
        None for models of two formats, or where the copy's weights can't be counted.
    """
    if before.framework != after.framework:
        return None
    held = kept = _quantized(graph)
    if held:
        try:
            kept = _quantized(open_editor(after).graph)
        except (NotEditableError, ConrepairError):  # what an editor can't open isn't counted
            return None
    return Storage(held, kept, model_bytes(Path(before.path)), model_bytes(Path(after.path)))


def _quantized(graph: LayerGraph) -> int:
    found = set()
    for node in graph.nodes:
        for role, item in node.parameters.items():
            few = item.bits is not None and item.bits <= _MOST_BITS
            if few or (item.dtype in _WHOLE and len(item.shape) > 1):
                found.add(item.name or (node.name, role))
    return len(found)

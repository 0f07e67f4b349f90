"""Node data for Model Explorer: the introduced error of every layer, shown on the model's graph."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from google.protobuf.message import DecodeError

from conrepair.application.report.localization.advice import has_overlay
from conrepair.diagnosis.localization.result import LayerRow, Localization
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.load.proto_file import read_proto

Side = Literal["source", "target"]

_GUILTY, _ABOVE, _BELOW = "#d7301f", "#ffe08a", "#e3f1e4"
_INFINITE = 1e30  # JSON has no infinity, and Model Explorer adds up values: text would spoil its statistics


def overlay(model: Model, result: Localization, side: Side) -> dict[str, Any] | None:
    """The node data of one model.

    It names no graph, so Model Explorer lays it over the one that is shown: its readers call graphs differently.

    Args:
        model: Of that side.
        result: What was found.
        side: Whose names to use.

    Returns:
        `results` by node; None for a model that Model Explorer doesn't open, or whose file is gone.
    """
    ids = node_ids(model)
    if ids is None:
        return None
    worst: dict[str, LayerRow] = {}
    for row in result.layers:
        node = ids.of(*_names(row, side))
        if node is not None and (node not in worst or _rank(row) > _rank(worst[node])):
            worst[node] = row
    results = {node: {"value": _value(row), "bgColor": _colour(row)} for node, row in worst.items()}
    return {"name": "error added by the layer", "results": results}


def _names(row: LayerRow, side: Side) -> tuple[str, str]:
    if side == "source":
        return row.source_tensor, row.source_layer
    return row.target_tensor, row.target_layer


def _rank(row: LayerRow) -> tuple[bool, float]:
    return row.guilty, _value(row)


def _value(row: LayerRow) -> float:
    error = row.introduced_error
    return float(f"{error:.3g}") if math.isfinite(error) else _INFINITE


def _colour(row: LayerRow) -> str:
    if row.guilty:
        return _GUILTY
    return _BELOW if row.introduced_error <= row.noise_floor else _ABOVE


# What Model Explorer calls the nodes of a model: it depends on the reader that it has for the format.


@dataclass(frozen=True)
class _NodeIds:
    """Names of nodes.

    Attributes:
        tensors: Node by tensor; None where Model Explorer finds nodes by the names of their tensors itself.
        layers: Node by its name in the file, for tensors inside of a node (one that calls a function of the file).
    """

    tensors: Mapping[str, str] | None = None
    layers: Mapping[str, str] = field(default_factory=dict)

    def of(self, tensor: str, layer: str) -> str | None:
        """The node that computes a tensor; None where the graph that's shown has none."""
        if self.tensors is None:
            return tensor
        return self.tensors.get(tensor) or self.layers.get(layer) or self.tensors.get(layer)


def node_ids(model: Model) -> _NodeIds | None:
    """How to name a model's nodes.

    TFLite: nodes are found by the names of their tensors. Exported PyTorch programs: nodes are called as their
    tensors are. ONNX: as in the file, made unique.

    Args:
        model: Any.

    Returns:
        None for a model that Model Explorer doesn't open, or whose file is gone or can't be read.
    """
    path = Path(model.path)
    if not has_overlay(model) or not path.is_file():
        return None
    return _of_onnx(path) if model.framework == "onnx" else _NodeIds()


def _of_onnx(path: Path) -> _NodeIds | None:
    """Names as the reader of ONNX files has them: those of the file, where each is there once."""
    try:
        nodes = read_proto(path).graph.node
        named = [(node.name, list(node.output)) for node in nodes]
        names = [name for name, _ in named]
        ids = names if all(names) and len(set(names)) == len(names) else _made_unique(path)
    except (DecodeError, ValueError, OSError):
        return None  # it was changed since it was analysed, and colours aren't worth losing the report for
    tensors = {tensor: new for (_, outputs), new in zip(named, ids, strict=True) for tensor in outputs if tensor}
    counted = Counter(names)
    layers = {name: new for name, new in zip(names, ids, strict=True) if name and counted[name] == 1}
    return _NodeIds(tensors, layers)


def _made_unique(path: Path) -> list[str]:
    """Names of a file's nodes where some have none, or one of another's: that reader calls this pass of onnx_ir's.

    Raises:
        ValueError: if the file can't be read.
    """
    import onnx_ir  # it takes half a second, and most exporters name every node
    from onnx_ir.passes.common import NameFixPass

    try:
        model = onnx_ir.serde.deserialize_model(read_proto(path))
    except onnx_ir.serde.SerdeError as error:
        raise ValueError(f"{path}: {error}") from error
    NameFixPass()(model)
    return [node.name or "" for node in model.graph]

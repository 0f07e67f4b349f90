"""What Model Explorer calls the nodes of a model: it depends on the reader that it has for the format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import DecodeError

from conrepair.frameworks.model import Model
from conrepair.frameworks.proto_file import read_proto
from conrepair.report.localization.about import has_overlay

__all__ = ["NodeIds", "node_ids"]


@dataclass(frozen=True)
class NodeIds:
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


def node_ids(model: Model) -> NodeIds | None:
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
    return _of_onnx(path) if model.framework == "onnx" else NodeIds()


def _of_onnx(path: Path) -> NodeIds | None:
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
    return NodeIds(tensors, layers)


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

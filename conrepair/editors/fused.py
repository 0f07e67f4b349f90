"""Changes around an activation that a format has inside a layer: it becomes an operation of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conrepair.editors.operation import Operation
from conrepair.graph.layer_graph import LayerGraph, Node

__all__ = ["unfused"]


def unfused(
    graph: LayerGraph, hidden: str, tensor: str, operations: Sequence[Operation]
) -> tuple[Node, str, Sequence[Operation]] | None:
    """What to compute in place of which tensor, once an activation isn't inside its layer any more.

    Args:
        graph: With each such activation as a node, behind a tensor that can't be reached.
        hidden: How the names of such tensors end.
        tensor: Whose readers shall read the operations' result.
        operations: They may read the tensor in front of the activation.

    Returns:
        The activation that must be taken out of its layer, the tensor behind it, and the operations; None where no
        such tensor is meant.
    """
    front = tensor
    if not tensor.endswith(hidden):
        producer = graph.producers.get(tensor)
        front = producer.inputs[0] if producer is not None and producer.inputs else ""
        if not front.endswith(hidden) or not any(front in operation.inputs for operation in operations):
            return None
    activation = graph.consumers[front][0]
    behind = activation.outputs[0]
    fed = [
        replace(item, inputs=tuple(behind if name == front else name for name in item.inputs)) for item in operations
    ]
    if tensor == front:
        fed.append(Operation(activation.op, (len(fed) - 1,), activation.attributes))
    return activation, behind, fed

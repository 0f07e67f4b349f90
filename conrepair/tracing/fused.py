"""Which operator of a fused kernel makes an error: each is looked at as a kernel of its own."""

from __future__ import annotations

import dataclasses

import onnx

from conrepair.networks.network import Network
from conrepair.tracing.propagation import Replayed

__all__ = ["has_guilty_groups", "inside", "taken_apart"]

_GENERATED = "generated"


def has_guilty_groups(run: Replayed) -> bool:
    """Whether a kernel of several operators generated an error."""
    return any(item.change == _GENERATED and len(item.operators) > 1 for item in run.errors)


def taken_apart(model: onnx.ModelProto, run: Replayed, network: Network, single: Replayed) -> list[Replayed]:
    """Say of fused kernels that generated an error which of their operators did.

    Args:
        model: The network.
        run: Of the build in question.
        network: Built so that no operators are fused.
        single: The same run of that.

    Returns:
        The run, its errors with `culprits`; and the culprits' own.
    """
    guilty = {item.tensor: item for item in single.errors if item.change == _GENERATED}
    told, own = [], dict.fromkeys(guilty, False)
    for item in run.errors:
        if item.change == _GENERATED and len(item.operators) > 1:
            found = [name for name in guilty if name in inside(model, run, item.tensor)]
            own |= dict.fromkeys(found, True)
            item = dataclasses.replace(item, culprits=tuple(_operator(network, name) for name in found))
        told.append(item)
    kept = tuple(guilty[name] for name, is_culprit in own.items() if is_culprit)
    return [dataclasses.replace(run, errors=tuple(told)), dataclasses.replace(single, errors=kept)]


def inside(model: onnx.ModelProto, run: Replayed, tensor: str) -> set[str]:
    """Tensors that a kernel computes on its way to the one that's seen, and that one."""
    writer = {name: node for node in model.graph.node for name in node.output}
    found, pending = {tensor}, [tensor]
    while pending:
        node = writer.get(pending.pop())
        for name in () if node is None else node.input:
            if name in writer and name not in run.given and name not in found:
                found.add(name)
                pending.append(name)
    return found


def _operator(network: Network, tensor: str) -> str:
    kernel = network.kernel(tensor)
    operators = [] if kernel is None else [f"{kind} '{name}'" for name, kind in kernel.operators]
    return ", ".join(operators) or tensor

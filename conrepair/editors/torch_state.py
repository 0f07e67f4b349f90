"""New constants in an exported program: a buffer, and the placeholder that stands for it."""

from __future__ import annotations

import itertools

import torch
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

__all__ = ["add_buffer"]


def add_buffer(program: torch.export.ExportedProgram, tensor: torch.Tensor, label: str) -> torch.fx.Node:
    """Register numbers, in place.

    Args:
        program: Gets them in its state.
        tensor: The numbers.
        label: For the names.

    Returns:
        The placeholder that stands for them, in front of the network's own inputs.
    """
    keys = (f"{label}_constant_{number}" for number in itertools.count())
    key = next(name for name in keys if name not in program.state_dict)
    specs = program.graph_signature.input_specs
    own = next((place for place, spec in enumerate(specs) if spec.kind == InputKind.USER_INPUT), len(specs))
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    first = placeholders[own] if own < len(placeholders) else next(iter(program.graph.nodes))
    with program.graph.inserting_before(first):
        node = program.graph.create_node("placeholder", f"b_{key}", name=f"b_{key}")
    mode = torch._guards.detect_fake_mode([item.meta.get("val") for item in placeholders])
    node.meta["val"] = tensor if mode is None else mode.from_tensor(tensor, static_shapes=True)
    specs.insert(own, InputSpec(InputKind.BUFFER, TensorArgument(name=node.name), key, persistent=True))
    program.state_dict[key] = tensor
    return node

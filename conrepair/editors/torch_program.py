"""Changes of an exported program that no call makes: new constants, and the order of its nodes."""

from __future__ import annotations

import itertools

import torch
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

from conrepair.editors.editor import NotEditableError


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


def put_in_order(graph: torch.fx.Graph) -> None:
    """Move nodes behind those that they read, in place; what's in order stays as it is.

    Raises:
        NotEditableError: if nodes read one another in a circle.
    """
    waiting, done = list(graph.nodes), set[torch.fx.Node]()
    while waiting:
        node = next((item for item in waiting if done.issuperset(item.all_input_nodes)), None)
        if node is None:
            raise NotEditableError("what is put in would read what is computed from it")
        if node is not waiting[0]:
            waiting[0].prepend(node)
        waiting.remove(node)
        done.add(node)


def drop_unread(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """Take out a node that nothing reads, and what only that read."""
    if node.users or node.op != "call_function":
        return
    read = node.all_input_nodes
    graph.erase_node(node)
    for item in read:
        drop_unread(graph, item)

"""List an exported program's layers in the neutral vocabulary."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from conrepair.editors.torch_operators import OPERATORS, AtenOperator, arguments_of
from conrepair.graph.layer_graph import Array, Attribute, LayerGraph, Node, Parameter, Tensor

__all__ = [
    "RECURRENT_ROLES",
    "graph_of_program",
    "is_aten",
    "module_path",
    "name_of_operator",
    "numpy_of",
    "state_of",
]

RECURRENT_ROLES = ("W", "R")
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2)}  # ONNX's order from torch's, by gate


def graph_of_program(program: torch.export.ExportedProgram) -> LayerGraph:
    """The layers of an exported program; names are the fx nodes'."""
    signature = program.graph_signature
    inputs = tuple(str(name) for name in signature.user_inputs if isinstance(name, str))
    outputs = tuple(str(name) for name in signature.user_outputs if isinstance(name, str))
    state = state_of(program)
    tensors = {
        node.name: _tensor(node.name, value)
        for node in program.graph.nodes
        if isinstance(value := node.meta.get("val"), torch.Tensor) and node.name not in state
    }
    nodes = [
        _node(node, program, state)
        for node in program.graph.nodes
        if node.op == "call_function" and (node.name in tensors or name_of_operator(node) in {"lstm", "gru"})
    ]
    for node in nodes:
        for name in [*node.inputs, *node.outputs]:
            tensors.setdefault(name, Tensor(name, None, "float32", observable=False))
    return LayerGraph(inputs, tuple(name for name in outputs if name in tensors), tensors, tuple(nodes))


def state_of(program: torch.export.ExportedProgram) -> dict[str, str]:
    """Names in the state dict, by the placeholder that stands for them."""
    signature = program.graph_signature
    return {**signature.inputs_to_parameters, **signature.inputs_to_buffers}


def is_aten(node: torch.fx.Node) -> bool:
    """Whether a node calls an ATen operator."""
    return node.op == "call_function" and str(node.target).startswith("aten.")


def name_of_operator(node: torch.fx.Node) -> str:
    """The operator without its overload and the mark of working in place; "" for what isn't ATen's."""
    return str(node.target).split(".")[1].removesuffix("_") if is_aten(node) else ""


def module_path(node: torch.fx.Node) -> str:
    """Where the module stands that the node comes from; the node's name when that's the network itself."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]) if stack else ""
    return path.removeprefix("L['self'].").removeprefix("L__self__.") or node.name


def numpy_of(tensor: torch.Tensor) -> Array:
    """The numbers, half precision as float32."""
    wide = tensor.detach().float() if tensor.dtype in {torch.bfloat16, torch.float16} else tensor.detach()
    array: Array = wide.cpu().numpy().copy()
    return array


def _node(node: torch.fx.Node, program: torch.export.ExportedProgram, state: Mapping[str, str]) -> Node:
    name = name_of_operator(node)
    entry = OPERATORS.get(name)
    arguments = arguments_of(node) if is_aten(node) else {}
    fed = tuple(item.name for item in node.all_input_nodes if item.name not in state)
    op = name or getattr(node.target, "__name__", str(node.target))
    attributes: dict[str, Attribute] = {}
    parameters: dict[str, Parameter] = {}
    if entry is not None:
        op = entry.op
        attributes = _attributes(entry, arguments, node)
        parameters = _parameters(entry, arguments, program, state)
    elif node.target is operator.getitem:
        op = "Identity"
    return Node(node.name, module_path(node), op, str(node.target), fed, (node.name,), attributes, parameters)


def _attributes(entry: AtenOperator, arguments: Mapping[str, Any], node: torch.fx.Node) -> dict[str, Attribute]:
    found: dict[str, Attribute] = dict(entry.values)
    for attribute, argument in entry.attributes.items():
        value = arguments.get(argument)
        if attribute == "pads" and isinstance(value, list | tuple) and all(isinstance(item, int) for item in value):
            found[attribute] = (
                _pads_of_axes(value, len(node.meta["val"].shape)) if entry.op == "Pad" else (*value, *value)
            )
        elif attribute == "coordinate_transformation_mode":
            found[attribute] = "align_corners" if value else "half_pixel"
        elif attribute == "axis" and isinstance(value, int):
            found[attribute] = value % len(node.meta["val"].shape)
        elif isinstance(value, list | tuple) and all(isinstance(item, int) for item in value):
            found[attribute] = tuple(value)
        elif isinstance(value, int | float | str | bool):
            found[attribute] = value
    return found


def _pads_of_axes(pads: Sequence[int], rank: int) -> tuple[int, ...]:
    """Begins, then ends, of all axes, from torch's pairs that begin with the last axis."""
    pairs = [(pads[place], pads[place + 1]) for place in range(0, len(pads), 2)]
    pairs = [(0, 0)] * (rank - len(pairs)) + pairs[::-1]
    return tuple(begin for begin, _ in pairs) + tuple(end for _, end in pairs)


def _parameters(
    entry: AtenOperator, arguments: Mapping[str, Any], program: torch.export.ExportedProgram, state: Mapping[str, str]
) -> dict[str, Parameter]:
    if entry.op in _GATES:
        holders = dict(zip(RECURRENT_ROLES, arguments.get("params") or (), strict=False))
    else:
        holders = {role: arguments.get(argument) for role, argument in entry.parameters.items()}
    found = {}
    for role, holder in holders.items():
        key = state.get(holder.name) if isinstance(holder, torch.fx.Node) else None
        tensor = program.state_dict.get(key) if key is not None else None
        if key is not None and tensor is not None and tensor.is_floating_point():
            load = _loader(program, key, to_canonical(entry, role))
            shape = tuple(tensor.shape[::-1] if role in entry.transposed else tensor.shape)
            shape = (1, *shape) if entry.op in _GATES else shape
            found[role] = Parameter(key, shape, str(tensor.dtype).removeprefix("torch."), load)
    return found


def _loader(
    program: torch.export.ExportedProgram, key: str, convert: Callable[[Array], Array]
) -> Callable[[], Array]:
    return lambda: convert(numpy_of(program.state_dict[key]))


def to_canonical(entry: AtenOperator, role: str) -> Callable[[Array], Array]:
    """From the numbers as stored."""
    if entry.op in _GATES:
        return lambda array: _gates(array, _GATES[entry.op])[None]
    return (lambda array: array.T) if role in entry.transposed else (lambda array: array)


def from_canonical(entry: AtenOperator, role: str) -> Callable[[Array], Array]:
    """To the numbers as stored."""
    if entry.op in _GATES:
        back = tuple(int(place) for place in np.argsort(_GATES[entry.op]))
        return lambda array: _gates(array[0], back)
    return (lambda array: array.T) if role in entry.transposed else (lambda array: array)


def _gates(array: Array, order: tuple[int, ...]) -> Array:
    parts = np.split(array, len(order))
    return np.concatenate([parts[index] for index in order])


def _tensor(name: str, value: torch.Tensor) -> Tensor:
    shape = tuple(size if isinstance(size, int) else 1 for size in value.shape)
    return Tensor(name, shape, str(value.dtype).removeprefix("torch."))

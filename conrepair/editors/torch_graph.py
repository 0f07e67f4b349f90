"""List an exported program's layers in the neutral vocabulary."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from conrepair.editors.torch_operators import OPERATORS, AtenOperator, arguments_of
from conrepair.graph.layer_graph import Array, Attribute, LayerGraph, Node, Parameter, Tensor
from conrepair.networks.torch_call import TorchCall, TorchPart
from conrepair.networks.torch_constants import TorchConstants
from conrepair.networks.torch_graph import meaning_of, with_defaults
from conrepair.networks.torch_program import Program

__all__ = [
    "constants_of",
    "from_canonical",
    "graph_of_program",
    "holders_of",
    "is_aten",
    "module_path",
    "name_of_operator",
    "numpy_of",
    "state_of",
]

_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2)}  # ONNX's order from torch's, by gate


def graph_of_program(program: torch.export.ExportedProgram) -> LayerGraph:
    """The layers of an exported program; names are the fx nodes'."""
    signature = program.graph_signature
    inputs = tuple(str(name) for name in signature.user_inputs if isinstance(name, str))
    outputs = tuple(str(name) for name in signature.user_outputs if isinstance(name, str))
    state, constants = state_of(program), constants_of(program)
    tensors = {
        node.name: _tensor(node.name, value)
        for node in program.graph.nodes
        if isinstance(value := node.meta.get("val"), torch.Tensor) and node.name not in state
    }
    constants.dependent -= _of_sizes(program)
    values = {node: pytree.tree_map(_without_symbols, node.meta.get("val")) for node in program.graph.nodes}
    nodes = [
        _node(node, state, constants, values)
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


def constants_of(program: torch.export.ExportedProgram) -> TorchConstants:
    """What depends on no input: the state, and what's computed from it."""
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    names = {**state_of(program), **program.graph_signature.inputs_to_lifted_tensor_constants}
    held = {**program.constants, **program.state_dict}
    states = {node.name: held[names[node.name]] for node in placeholders if names.get(node.name) in held}
    fed = tuple(node for node in placeholders if node.name not in states)
    return TorchConstants(Program(program.graph_module, states, names, fed, (), {}))


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


def _node(
    node: torch.fx.Node, state: Mapping[str, str], constants: TorchConstants, values: Mapping[torch.fx.Node, Any]
) -> Node:
    name = name_of_operator(node)
    entry = OPERATORS.get(name)
    op = name or getattr(node.target, "__name__", str(node.target))
    attributes: dict[str, Attribute] = {}
    parameters: dict[str, Parameter] = {}
    holders = holders_of(node)
    if entry is not None:
        op = entry.op
        parameters = _parameters(entry, holders, state, constants)
    elif node.target is operator.getitem:
        op = "Identity"
    if is_aten(node) and op not in _GATES:
        part = _meaning(node, op, constants, values)
        op, attributes = part.op, with_defaults(part)
    held = {holder for role in parameters for holder in holders[role]}
    fed = tuple(item.name for item in node.all_input_nodes if item.name not in state and item not in held)
    return Node(node.name, module_path(node), op, str(node.target), fed, (node.name,), attributes, parameters)


def _meaning(
    node: torch.fx.Node, op: str, constants: TorchConstants, values: Mapping[torch.fx.Node, Any]
) -> TorchPart:
    """What localization takes an operator for; where those are several, the one that's called so."""
    call = TorchCall(node, values, constants)
    call.name = name_of_operator(node)
    parts = meaning_of(call)
    return next((part for part in parts if part.op == op), parts[-1])


def _of_sizes(program: torch.export.ExportedProgram) -> set[torch.fx.Node]:
    """What follows from sizes alone: numbers, where sizes are given."""
    found: set[torch.fx.Node] = set()
    for node in program.graph.nodes:
        if node.op != "call_function" or not isinstance(node.meta.get("val"), torch.SymInt):
            continue
        if node.target is torch.ops.aten.sym_size.int or found.issuperset(node.all_input_nodes):
            found.add(node)
    return found


def _without_symbols(value: Any) -> Any:
    """A tensor without content whose sizes are numbers, one where the program leaves them open."""
    if isinstance(value, torch.Tensor):
        return torch.empty(_sizes(value), dtype=value.dtype, device="meta")
    return 1 if isinstance(value, torch.SymInt) else value


def _sizes(value: torch.Tensor) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else 1 for size in value.shape)


def holders_of(node: torch.fx.Node) -> dict[str, tuple[torch.fx.Node, ...]]:
    """The arguments of an operator that may be parameters, by role; biases of a recurrent layer are two."""
    entry = OPERATORS.get(name_of_operator(node))
    if entry is None:
        return {}
    arguments = arguments_of(node)
    if entry.op not in _GATES:
        found = {role: (arguments.get(argument),) for role, argument in entry.parameters.items()}
    else:
        given = tuple(arguments.get("params") or ())
        plain = len(given) in {2, 4} and arguments.get("num_layers") == 1 and not arguments.get("bidirectional")
        found = {"W": given[:1], "R": given[1:2], "B": given[2:]} if plain else {}
    return {
        role: items
        for role, items in found.items()
        if items and all(isinstance(item, torch.fx.Node) for item in items)
    }


def _parameters(
    entry: AtenOperator,
    holders: Mapping[str, Sequence[torch.fx.Node]],
    state: Mapping[str, str],
    constants: TorchConstants,
) -> dict[str, Parameter]:
    """Numbers of the state, and what's computed from it alone: weights that are put in another order as it runs."""
    found = {}
    for role, items in holders.items():
        values = [item.meta.get("val") for item in items]
        if constants.dependent.intersection(items) or not all(
            isinstance(value, torch.Tensor) and value.is_floating_point() for value in values
        ):
            continue
        shapes = [np.empty(tuple(map(int, value.shape)), np.bool_) for value in values]
        found[role] = Parameter(
            state.get(items[0].name, items[0].name),
            to_canonical(entry, role)(*shapes).shape,
            str(values[0].dtype).removeprefix("torch."),
            _loader(constants, items, to_canonical(entry, role)),
            made_by="" if items[0].name in state else module_path(items[0]),
        )
    return found


def _loader(
    constants: TorchConstants, nodes: Sequence[torch.fx.Node], convert: Callable[..., Array]
) -> Callable[[], Array]:
    return lambda: convert(*(numpy_of(constants.value(node)) for node in nodes))


def to_canonical(entry: AtenOperator, role: str) -> Callable[..., Array]:
    """From the numbers as stored: in several arrays where a role has several holders."""
    if entry.op in _GATES:
        return lambda *arrays: np.concatenate([_gates(array, _GATES[entry.op]) for array in arrays])[None]
    return (lambda array: array.T) if role in entry.transposed else (lambda array: array)


def from_canonical(entry: AtenOperator, role: str, count: int) -> Callable[[Array], list[Array]]:
    """To the numbers as stored, for so many holders."""
    if entry.op in _GATES:
        back = tuple(int(place) for place in np.argsort(_GATES[entry.op]))
        return lambda array: [_gates(part, back) for part in np.split(array[0], count)]
    return (lambda array: [array.T]) if role in entry.transposed else (lambda array: [array])


def _gates(array: Array, order: tuple[int, ...]) -> Array:
    parts = np.split(array, len(order))
    return np.concatenate([parts[index] for index in order])


def _tensor(name: str, value: torch.Tensor) -> Tensor:
    return Tensor(name, _sizes(value), str(value.dtype).removeprefix("torch."))

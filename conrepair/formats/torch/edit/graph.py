"""List an exported program's layers in the neutral vocabulary."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from conrepair.formats.torch.read.call import TorchCall, TorchPart, Transform
from conrepair.formats.torch.read.constants import TorchConstants
from conrepair.formats.torch.read.graph import meaning_of, with_defaults
from conrepair.formats.torch.read.program import Program
from conrepair.ground.data.following import reached
from conrepair.ground.graph.layer_graph import Array, Attribute, LayerGraph, Node, Parameter, Tensor


def graph_of_program(program: torch.export.ExportedProgram) -> LayerGraph:
    """The layers of an exported program; names are the fx nodes'."""
    signature = program.graph_signature
    inputs = tuple(str(name) for name in signature.user_inputs if isinstance(name, str))
    outputs = tuple(str(name) for name in signature.user_outputs if isinstance(name, str))
    state, constants = state_of(program), constants_of(program)
    tensors = {
        node.name: Tensor(node.name, _sizes(value), str(value.dtype).removeprefix("torch."))
        for node in program.graph.nodes
        if isinstance(value := node.meta.get("val"), torch.Tensor) and node.name not in state
    }
    nodes = [
        _node(node, state, constants)
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
    constants = TorchConstants(Program(program.graph_module, states, names, fed, (), {}))
    constants.dependent -= _of_sizes(program)
    return constants


def _is_aten(node: torch.fx.Node) -> bool:
    """Whether a node calls an ATen operator."""
    return node.op == "call_function" and str(node.target).startswith("aten.")


def name_of_operator(node: torch.fx.Node) -> str:
    """The operator without its overload and the mark of working in place; "" for what isn't ATen's."""
    return str(node.target).split(".")[1].removesuffix("_") if _is_aten(node) else ""


def module_path(node: torch.fx.Node) -> str:
    """Where the module stands that the node comes from; the node's name when that's the network itself."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]) if stack else ""
    return path.removeprefix("L['self'].").removeprefix("L__self__.") or node.name


def _node(node: torch.fx.Node, state: Mapping[str, str], constants: TorchConstants) -> Node:
    attributes: dict[str, Attribute] = {}
    parameters: Mapping[str, Parameter] = {}
    held: set[torch.fx.Node] = set()
    op = "Identity" if node.target is operator.getitem else getattr(node.target, "__name__", str(node.target))
    if _is_aten(node):
        part, holders = meaning_in_file(node, constants)
        op, attributes, parameters = part.op, with_defaults(part), part.parameters
        held = {item for holder in holders.values() for item in holder.nodes}
    fed = tuple(item.name for item in node.all_input_nodes if item.name not in state and item not in held)
    return Node(node.name, module_path(node), op, str(node.target), fed, (node.name,), attributes, parameters)


@dataclass(frozen=True)
class Holder:
    """What a parameter is made of.

    Attributes:
        nodes: Their values are the numbers as stored.
        transform: Puts these into the vocabulary's convention; None where they are in it.
    """

    nodes: tuple[torch.fx.Node, ...]
    transform: Transform | None


class _Call(TorchCall):
    """Of a file's own program: remembers who holds parameters."""

    def __init__(self, node: torch.fx.Node, constants: TorchConstants) -> None:
        near = [node, *node.all_input_nodes]
        values = {item: pytree.tree_map(_without_symbols, item.meta.get("val")) for item in near}
        super().__init__(node, values, constants)
        self.name = name_of_operator(node)
        self.made: list[tuple[Parameter, Holder]] = []

    def parameter(self, *nodes: torch.fx.Node, transform: Transform | None = None) -> Parameter:
        made, stored = super().parameter(*nodes, transform=transform), self._constants.program.state_names
        name = nodes[0].name
        made = replace(
            made,
            name=stored.get(name, name),
            load=partial(_wide, made),
            made_by="" if name in stored else module_path(nodes[0]),
        )
        self.made.append((made, Holder(nodes, transform)))
        return made


def meaning_in_file(node: torch.fx.Node, constants: TorchConstants) -> tuple[TorchPart, dict[str, Holder]]:
    """What localization takes an operator for, and who holds its parameters; the first part without, of several.

    Numbers that follow from an input's sizes aren't parameters: nothing computes them before it runs.
    """
    call = _Call(node, constants)
    part, *others = meaning_of(call)
    inputs = set(constants.program.inputs)
    holders = {
        role: holder
        for role, parameter in part.parameters.items()
        for made, holder in call.made
        if made is parameter
        and not others
        and not any(inputs.intersection(constants.origins(item)) for item in holder.nodes)
    }
    kept = {role: parameter for role, parameter in part.parameters.items() if role in holders}
    return replace(part, parameters=kept), holders


def _of_sizes(program: torch.export.ExportedProgram) -> set[torch.fx.Node]:
    """What follows from sizes alone, where these are given: numbers, and zeros in which recurrent layers begin."""
    found: set[torch.fx.Node] = set()
    for node in program.graph.nodes:
        is_number = node.op == "call_function" and isinstance(node.meta.get("val"), torch.SymInt)
        if not is_number and node.target is not torch.ops.aten.zeros.default:
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


def _wide(parameter: Parameter) -> Array:
    """Its numbers, half precision as float32."""
    array = parameter.numpy()
    return array.astype(np.float32) if array.dtype.name in {"float16", "bfloat16"} else array


# Where the numbers are stored that a program only puts in another order before it uses them.


def stored_places(
    program: torch.export.ExportedProgram, holder: torch.fx.Node, reader: torch.fx.Node
) -> tuple[str, Array] | None:
    """Where each number of a computed constant comes from.

    Args:
        program: Holds the state.
        holder: What computes the constant.
        reader: Reads it.

    Returns:
        The name in the state, and the places there, flat, in the constant's shape; None where numbers aren't only
        moved, or somebody else reads any of the same tensor.
    """
    constants, names = constants_of(program), state_of(program)
    origins = [node for node in constants.origins(holder) if node.name in names]
    if len(origins) != 1 or _readers(origins[0], constants) != {reader}:
        return None
    key = names[origins[0].name]
    tensor = program.state_dict[key]
    order = torch.arange(math.prod(tensor.shape), dtype=torch.float64).reshape(tensor.shape)
    try:
        found = _with_state(constants, origins[0].name, order).value(holder)
    except RuntimeError:  # an operator that minds the type: it computes, and doesn't move
        return None
    whole = _moved(found, order.numel())
    if whole is None:
        return None
    same = torch.equal(tensor.detach().reshape(-1)[torch.from_numpy(whole)], constants.value(holder))
    return (key, whole) if same else None


def as_stored(holder: Holder, array: Array) -> list[torch.Tensor] | None:
    """A parameter's numbers as the nodes hold them.

    Args:
        holder: The nodes.
        array: In the vocabulary's convention.

    Returns:
        For each node; None where the numbers are another shape's, or aren't the nodes' own in another order.
    """
    shapes = [node.meta["val"].shape for node in holder.nodes]
    counts = [math.prod(shape) for shape in shapes]
    order = torch.arange(sum(counts), dtype=torch.float64)
    given = [piece.reshape(shape) for piece, shape in zip(order.split(counts), shapes, strict=True)]
    places = _moved(holder.transform(*given) if holder.transform else given[0], sum(counts))
    if places is None or places.size != sum(counts) or places.shape != array.shape:
        return None
    numbers = torch.empty(sum(counts), dtype=torch.from_numpy(np.asarray(array)).dtype)
    numbers[torch.from_numpy(places)] = torch.from_numpy(np.asarray(array, order="C"))
    return [piece.reshape(shape) for piece, shape in zip(numbers.split(counts), shapes, strict=True)]


def _moved(found: torch.Tensor, count: int) -> Array | None:
    """Where numbers come from, of so many that were counted; None where they were computed with or repeated."""
    places = found.numpy()
    whole: Array = places.astype(np.int64)
    moved = np.array_equal(whole, places) and np.unique(whole).size == whole.size and whole.max(initial=-1) < count
    return whole if moved else None


def _readers(state: torch.fx.Node, constants: TorchConstants) -> set[torch.fx.Node]:
    """What isn't constant, and reads something that's made from a state."""

    def ends(node: torch.fx.Node) -> bool:
        return node in constants.dependent or node.op == "output"

    return set(filter(ends, reached([state], lambda node: () if ends(node) else node.users)))


def _with_state(constants: TorchConstants, name: str, tensor: torch.Tensor) -> TorchConstants:
    program = constants.program
    return TorchConstants(dataclasses.replace(program, states={**program.states, name: tensor}))

"""The neutral graph of a PyTorch program."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from conrepair.formats.torch.load.framework import dtype_name
from conrepair.formats.torch.read import arrangement as torch_arrangement
from conrepair.formats.torch.read import elementwise as torch_elementwise
from conrepair.formats.torch.read import layers as torch_layers
from conrepair.formats.torch.read import recurrent as torch_recurrent
from conrepair.formats.torch.read.call import TorchCall, TorchPart, operator_name, sizes
from conrepair.formats.torch.read.constants import TorchConstants
from conrepair.formats.torch.read.program import Program, is_tuple_item
from conrepair.formats.torch.read.simplify import SPELLED
from conrepair.ground.graph.layer_graph import Attribute, LayerGraph, Node, Tensor
from conrepair.ground.graph.operators import OPERATORS

_RULES = {**torch_layers.RULES, **torch_elementwise.RULES, **torch_arrangement.RULES, **torch_recurrent.RULES}
_NUMBERS = {bool: "bool", torch.SymBool: "bool", float: "float64", torch.SymFloat: "float64"}
_AGAIN = re.compile(r"@\d+$")  # of a module's path at its second call


def named_graph(
    program: Program, constants: TorchConstants, inputs: Sequence[str]
) -> tuple[LayerGraph, dict[str, fx.Node]]:
    """Write a program in the vocabulary.

    Args:
        program: The program.
        constants: Of the program.
        inputs: What the inputs are called; those that another tensor is called keep the program's names.

    Returns:
        The graph, and the node of the program that each observable tensor comes from.
    """
    builder = _TorchGraphBuilder(program, constants)
    builder.add_inputs(inputs)
    for node in program.module.graph.nodes:
        if node.op == "call_function" and node in constants.dependent:
            builder.add_call(node)
    for _, node in program.outputs:
        builder.add_constant(node)
    graph = LayerGraph(
        tuple(builder.names[node] for node in program.inputs),
        tuple(builder.names[node] for _, node in program.outputs),
        builder.tensors,
        tuple(builder.nodes),
    )
    return graph, {name: node for node, name in builder.names.items() if builder.tensors[name].observable}


def has_word(target: Any) -> bool:
    """Whether the vocabulary knows an operator of PyTorch's."""
    return isinstance(target, torch._ops.OpOverload) and operator_name(target) in _RULES


def meaning_of(call: TorchCall, results: int = 1) -> Sequence[TorchPart]:
    """What an operator is in the vocabulary; one part of its own name where that has no word for such a use.

    Args:
        call: Of the operator.
        results: How many it gives.
    """
    rule = _RULES.get(call.name)
    form = rule(call) if rule is not None else None
    parts = [form] if isinstance(form, TorchPart) else form
    if parts is None:
        return [_native(call, results)]
    read = {given for part in parts for given in part.inputs}
    # A number that is computed from the inputs (a size that depends on the data) has no place in the vocabulary.
    return parts if read.issuperset(_dependent(call)) else [_native(call, results)]


def with_defaults(part: TorchPart) -> dict[str, Attribute]:
    """A part's attributes, and those that it has without saying so."""
    defaults = OPERATORS[part.op].attributes if part.op in OPERATORS else {}
    return {**defaults, **part.attributes}


def _native(call: TorchCall, results: int) -> TorchPart:
    attributes: dict[str, Attribute] = {}
    parameters = {}
    for name, value in call.arguments.items():
        leaves = pytree.tree_leaves(value, is_leaf=lambda item: isinstance(item, fx.Node))
        found = [leaf for leaf in leaves if isinstance(leaf, fx.Node)]
        known = [leaf for leaf in found if isinstance(call.value(leaf), torch.Tensor) and call.is_constant(leaf)]
        if not found:
            attributes[name] = _plain(value)
        for position, leaf in enumerate(known):
            parameters[name if value is leaf else f"{name}.{position}"] = call.parameter(leaf)
    return TorchPart(_native_name(call), attributes, _dependent(call), parameters, tuple(range(results)))


def _dependent(call: TorchCall) -> list[fx.Node]:
    return [given for given in call.node.all_input_nodes if call.depends(given)]


class _TorchGraphBuilder:
    """Collects nodes and tensors.

    Attributes:
        names: Of the tensors, by where they come from.
        tensors: By name.
        nodes: In order.
    """

    def __init__(self, program: Program, constants: TorchConstants) -> None:
        self.names: dict[fx.Node, str] = {}
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self._program = program
        self._constants = constants
        self._results: dict[fx.Node, list[str]] = {}
        self._layers = _Layers(program, constants)

    def add_inputs(self, names: Sequence[str]) -> None:
        taken = {node.name for node in self._program.module.graph.nodes} - {
            node.name for node in self._program.inputs
        }
        for node, wanted in zip(self._program.inputs, names, strict=True):
            name = node.name if wanted in taken else wanted
            taken.add(name)
            self._add_tensor(node, name)

    def add_call(self, node: fx.Node) -> None:
        if is_tuple_item(node) and node.args[0] in self._results:
            return
        self._add_results(node)
        call = TorchCall(node, self._program.values, self._constants)
        for part in meaning_of(call, len(self._results[node])):
            self._add_part(call, part)

    def add_constant(self, node: fx.Node) -> None:
        """A result that depends on no input."""
        if node in self.names:
            return
        self._add_tensor(node, node.name)
        value = TorchCall(node, self._program.values, self._constants).parameter(node)
        self.nodes.append(
            Node(node.name, node.name, "Constant", str(node.target), (), (node.name,), {}, {"value": value})
        )

    def _add_part(self, call: TorchCall, part: TorchPart) -> None:
        node = call.node
        for tensor in part.inner:
            self.tensors[tensor.name] = tensor
        inputs = [name for given in part.inputs for name in self._input_names(given)]
        results = self._results[node]
        outputs = [
            name if isinstance(name, str) else results[name]
            for name in part.outputs
            if isinstance(name, str) or name < len(results)
        ]
        if not outputs:  # a state that nobody reads
            return
        self.nodes.append(
            Node(
                name=node.name + part.suffix,
                layer=self._layers.of(node),
                op=part.op,
                native=part.native or _native_name(call),
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                attributes=with_defaults(part),
                parameters=dict(part.parameters),
            )
        )

    def _input_names(self, given: fx.Node | str | None) -> list[str]:
        if not isinstance(given, fx.Node):
            return [given or ""]
        return [self.names[given]] if given in self.names else self._results[given]

    def _add_results(self, node: fx.Node) -> None:
        value = self._program.values[node]
        if not isinstance(value, tuple | list):
            self._add_tensor(node, node.name)
            self._results[node] = [node.name]
            return
        items: dict[int, list[fx.Node]] = {}
        for user in filter(is_tuple_item, node.users):
            items.setdefault(int(user.args[1]) % len(value), []).append(user)
        count = 1 + max(items, default=-1) if len(items) == len(node.users) else len(value)
        self._results[node] = []
        for position in range(max(count, 1)):
            readers = items.get(position, [])
            name = readers[0].name if readers else f"{node.name}:{position}"
            for reader in readers:
                self.names[reader] = name
            self.tensors[name] = self._tensor(name, value[position], observable=bool(readers))
            self._results[node].append(name)

    def _add_tensor(self, node: fx.Node, name: str) -> None:
        self.names[node] = name
        self.tensors[name] = self._tensor(name, self._program.values[node], observable=True)

    def _tensor(self, name: str, value: Any, *, observable: bool) -> Tensor:
        if isinstance(value, torch.Tensor):
            return Tensor(name, sizes(value.shape), dtype_name(value.dtype), observable=observable)
        return Tensor(name, (), _NUMBERS.get(type(value), "int64"), observable=False)


class _Layers:
    """What the operators are called in the module: the path of a leaf module that consists of just one."""

    def __init__(self, program: Program, constants: TorchConstants) -> None:
        calls = [
            node
            for node in program.module.graph.nodes
            if node.op == "call_function"
            and node in constants.dependent
            and not is_tuple_item(node)
            and SPELLED not in node.meta
        ]
        self._places = {node: _place(node) for node in calls}
        self._counts = Counter(self._places.values())
        self._parents = {parent for _, path in self._counts for parent in _parents(path)}

    def of(self, node: fx.Node) -> str:
        node = node.meta.get(SPELLED, node)
        place = self._places[node]
        alone = self._counts[place] == 1 and place[1] not in self._parents
        return place[1] if alone and place[1] else node.name


def _place(node: fx.Node) -> tuple[str, str]:
    """Which call of which module a node belongs to, and the module's path."""
    stack = node.meta.get("nn_module_stack") or {"": ("", None)}
    key = [*stack][-1]
    return str(key), _AGAIN.sub("", str(stack[key][0]))


def _parents(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition(".")[0]
        yield path


def _native_name(call: TorchCall) -> str:
    target = call.node.target
    return str(target) if isinstance(target, torch._ops.OpOverload) else call.name


def _plain(value: Any) -> Attribute:
    """An argument as a plain value; types and devices as their names."""
    if isinstance(value, list | tuple):
        items = tuple(value)
        kinds = {type(item) for item in items}
        return items if len(kinds) <= 1 and kinds <= {int, float, str} else tuple(map(str, items))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return dtype_name(value) if isinstance(value, torch.dtype) else str(value)

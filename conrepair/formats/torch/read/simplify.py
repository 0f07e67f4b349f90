"""Write what the inputs' sizes and types tell as such, and drop what computes nothing."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx

SPELLED = "spelled"
"""Of a node's `meta`: the operator of the program that it's a part of."""
_MOST = 16  # operators in place of one
_decompositions = functools.cache(core_aten_decompositions)

_FILLS: Mapping[str, float | None] = {
    "aten::new_zeros": 0, "aten::new_ones": 1, "aten::new_full": None, "aten::new_empty": 0,
    "aten::zeros_like": 0, "aten::ones_like": 1, "aten::full_like": None, "aten::empty_like": 0,
}  # fmt: skip
_LIKE = {
    "aten::expand_as": torch.ops.aten.expand.default,
    "aten::view_as": torch.ops.aten.view.default,
    "aten::reshape_as": torch.ops.aten.reshape.default,
}


def simplify(graph: Graph, values: Mapping[Node, Any], outputs: Sequence[Node]) -> None:
    """Let no operator read a tensor of which it needs only the size or type.

    A mask that is made "like" an activation would otherwise depend on the network's inputs.

    Args:
        graph: Changed in place.
        values: What its nodes give, without content.
        outputs: The results; others (states that the program would write back) are dropped.
    """
    for node in list(graph.nodes):
        value = values.get(node)
        if node.op != "call_function":
            continue
        if isinstance(value, bool | int | float):
            _replace_by_number(node, value)
        elif isinstance(node.target, torch._ops.OpOverload) and isinstance(value, torch.Tensor):
            _forget_likeness(node, value)
    graph.output_node().args = (tuple(outputs),)
    for node in reversed(list(graph.nodes)):
        if node.op in {"call_function", "get_attr"} and not node.users:
            graph.erase_node(node)


def spell_out(
    graph: Graph, values: dict[Node, Any], inputs: Collection[Node], is_known: Callable[[Any], bool]
) -> None:
    """Write operators that the vocabulary lacks as PyTorch itself decomposes them, where all the others are known.

    Converters do the same, so that tensors inside have partners, and a repair can say what the program computes.

    Args:
        graph: Changed in place. The last of the operators takes the node, and so its name.
        values: What its nodes give, without content; gets those of the new ones.
        inputs: Only what depends on them is written otherwise.
        is_known: Whether the vocabulary has a word for what a node calls.
    """
    depends = set(inputs)
    for node in list(graph.nodes):
        if not depends.intersection(node.all_input_nodes):
            continue
        depends.add(node)
        tensors = [isinstance(values.get(item), torch.Tensor) for item in [node, *node.all_input_nodes]]
        if not isinstance(node.target, torch._ops.OpOverload) or is_known(node.target) or not all(tensors):
            continue
        if calls := _decomposed(node, values, is_known):
            *inner, last = calls
            read = dict(zip(calls[0].graph.find_nodes(op="placeholder"), node.all_input_nodes, strict=True))
            for item in inner:
                arguments = torch.fx.node.map_arg((item.args, item.kwargs), read.__getitem__)
                with graph.inserting_before(node):
                    name = f"{node.name}_{item.name}"
                    read[item] = graph.create_node("call_function", item.target, *arguments, name=name)
                read[item].meta = {**node.meta, "val": item.meta["val"], SPELLED: node}
                values[read[item]] = item.meta["val"]
            node.target = last.target
            node.args, node.kwargs = torch.fx.node.map_arg((last.args, last.kwargs), read.__getitem__)


def _decomposed(node: Node, values: Mapping[Node, Any], is_known: Callable[[Any], bool]) -> list[Node]:
    """What PyTorch computes a node by; nothing where it has no other way, or that takes operators unknown as well."""
    own = node.target.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
    if torch.Tag.nondeterministic_seeded in node.target.tags or not (own or node.target in _decompositions()):
        return []
    given = node.all_input_nodes
    sizes = [size for item in given for size in values[item].shape]
    if not all(isinstance(size, int) for size in sizes):
        return []

    def call(*tensors: torch.Tensor) -> Any:
        read = dict(zip(given, tensors, strict=True))
        return computed(node, read.__getitem__)

    traced = make_fx(call, {item: way for item, way in _decompositions().items() if not is_known(item)})
    with FakeTensorMode():  # of the processor, so that constants in between are
        likes = [values[item] for item in given]
        found = traced(*(torch.empty_strided(like.shape, like.stride(), dtype=like.dtype) for like in likes)).graph
    calls = [item for item in found.nodes if item.op not in {"placeholder", "output"}]
    depends = set(found.find_nodes(op="placeholder"))
    for item in calls:
        if depends.intersection(item.all_input_nodes):
            depends.add(item)
            if item.target is not operator.getitem and not is_known(item.target):
                return []
    plain = all(item.op == "call_function" for item in calls)
    return calls if plain and len(calls) <= _MOST and found.output_node().args[0] is calls[-1] else []


def _replace_by_number(node: Node, value: float) -> None:
    for user in list(node.users):
        replaced = torch.fx.node.map_arg((user.args, user.kwargs), lambda item: value if item is node else item)
        user.args, user.kwargs = replaced


def _forget_likeness(node: Node, value: torch.Tensor) -> None:
    schema, aten = node.target._schema, torch.ops.aten
    if schema.name == "aten::type_as" or (schema.name == "aten::to" and schema.overload_name == "other"):
        node.target, node.args, node.kwargs = aten.to.dtype, (node.args[0], value.dtype), {}
    elif not all(isinstance(size, int) for size in value.shape):
        return
    elif schema.name in _LIKE:
        node.target, node.args = _LIKE[schema.name], (node.args[0], list(value.shape))
    elif schema.name in _FILLS:
        fill = _FILLS[schema.name]
        if fill is None:
            fill = node.args[2 if schema.name == "aten::new_full" else 1]
        node.target, node.args, node.kwargs = aten.full.default, (list(value.shape), fill), {"dtype": value.dtype}


def computed(node: Node, value: Callable[[Node], Any]) -> Any:
    """Call one operator with the values of what it reads; holds none of them afterwards."""
    arguments, options = torch.fx.node.map_arg((node.args, node.kwargs), value)
    return node.target(*arguments, **options)

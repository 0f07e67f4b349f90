"""A source's operators as the target would have them: reading its tensors, in its layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conrepair.diagnosis.localization.align.layout import Layout
from conrepair.diagnosis.localization.faces.attributes import axis_map
from conrepair.diagnosis.localization.faces.steps.functions import is_elementwise
from conrepair.diagnosis.repairs.baking import BatchPlace, batch_places, place_in_shape
from conrepair.formats.editing.lowering import CHANNELLED
from conrepair.formats.editing.operation import NotEditableError, Operation, operation_of
from conrepair.ground.graph.attributes import as_integer
from conrepair.ground.graph.layer_graph import Array, Attribute, LayerGraph, Node, Parameter
from conrepair.ground.graph.operators import COMMUTATIVE, ELEMENTWISE_BINARY, OPERATORS, SOFTMAX

Perm = tuple[int, ...]
"""For each axis that a tensor has in the target, which one it is in the source."""

_NONE: Mapping[str, Array] = {}
_LEFT_OPEN = {"Reshape": -1, "Expand": 1}
_ALONG = {
    **dict.fromkeys((*SOFTMAX, "Concat"), "axis"),
    **{operator: "axes" for operator in OPERATORS if operator.startswith("Reduce")},
}


@dataclass(frozen=True)
class KnownTensor:
    """What stands for a tensor of the source.

    Attributes:
        tensor: The target's.
        layout: How the source's lies in it.
    """

    tensor: str
    layout: Layout


@dataclass(frozen=True)
class _Value:
    """A tensor of the graft: a name of the target, or the position of an operation; and how it lies."""

    place: str | int
    perm: Perm


def transplant(
    nodes: Sequence[Node],
    graph: LayerGraph,
    known: Mapping[str, KnownTensor],
    end: Layout,
    constants: Mapping[str, Array] = _NONE,
    wanted: str = "",
) -> tuple[Operation, ...]:
    """Say what nodes of a source compute, in terms of the target's tensors.

    Where values lie in another order in the target, operators are turned (axes, channels last), as far as they can;
    only in front of the others, and at the end, are values transposed.

    Args:
        nodes: Of the source, each behind those that it reads.
        graph: Theirs.
        known: What stands for the tensors that they read from outside.
        end: How the result lies in the target.
        constants: Tensors of the source that follow from sizes alone; they're written as the numbers that they are.
        wanted: What shall be computed; the last node's result by default.

    Raises:
        NotEditableError: if a tensor that they read has no partner, or an operator can't be said.
    """
    constants = {name: array for name, array in constants.items() if name not in known}
    made = _Transplant(graph, known)
    for node in nodes:
        if not graph.unfed.issuperset(node.outputs):
            for item in _of_one_result(_with_constants(node, constants)):
                made.add(item)
    return made.finished(wanted or nodes[-1].outputs[0], end)


class _Transplant:
    def __init__(self, graph: LayerGraph, known: Mapping[str, KnownTensor]) -> None:
        self._graph, self._known, self._batches = graph, known, batch_places(graph)
        self._values: dict[str, _Value] = {}
        self._operations: list[Operation] = []
        self._turned: dict[tuple[str | int, Perm], _Value] = {}

    def add(self, node: Node) -> None:
        """Append one node."""
        operation = operation_of(node)
        read = [self._value(name) for name in node.inputs if name]
        if node.op == "Transpose" and isinstance(perm := node.attributes.get("perm"), tuple):
            back = [int(place) for place in np.argsort(perm)]
            self._values[node.outputs[0]] = replace(read[0], perm=tuple(back[axis] for axis in read[0].perm))
            return  # the same numbers, seen in another order
        wanted = self._wanted(node, read)
        read = [self._in_order(value, wanted) if len(value.perm) == len(wanted) else value for value in read]
        if any(value.perm != wanted for value in read) and not _is_plain(wanted):
            wanted = tuple(range(len(wanted)))
            read = [self._in_order(value, tuple(range(len(value.perm)))) for value in read]
        turned, result = _turned(operation, node, wanted, self._graph.tensors[node.outputs[0]].shape)
        places = iter(value.place for value in read)
        inputs = tuple(next(places) if name else "" for name in node.inputs)
        self._put(replace(self._of_any_batch(turned, node), inputs=inputs), node.outputs[0], result)

    def finished(self, tensor: str, end: Layout) -> tuple[Operation, ...]:
        """All operations, of which the last one's result lies as the target has it."""
        perm = perm_of(end)
        value = self._value(tensor)
        if perm is not None and len(perm) == len(value.perm):
            value = self._in_order(value, perm)
        else:
            value = self._in_order(value, tuple(range(len(value.perm))))
            value = self._seen(value, end, self._batches.get(tensor))
        if value.place != len(self._operations) - 1:
            self._operations.append(Operation("Identity", (value.place,)))
        return tuple(self._operations)

    def _put(self, operation: Operation, tensor: str, perm: Perm) -> None:
        self._operations.append(operation)
        self._values[tensor] = _Value(len(self._operations) - 1, perm)

    def _value(self, tensor: str) -> _Value:
        if tensor in self._values:
            return self._values[tensor]
        known = self._known.get(tensor)
        if known is None:
            raise NotEditableError(f"the converted model has no counterpart of the original's tensor {tensor}")
        perm = perm_of(known.layout)
        if perm is not None:
            value = _Value(known.tensor, perm)
        else:
            back = tuple(int(place) for place in np.argsort(known.layout.axes))
            permuted = tuple(known.layout.view[axis] for axis in known.layout.axes)
            turned = Layout(known.layout.target, permuted, back, known.layout.source)
            batch = _place_behind(known.layout, self._batches.get(tensor))
            value = self._seen(_Value(known.tensor, tuple(range(len(turned.source)))), turned, batch)
        self._values[tensor] = value
        return value

    def _seen(self, value: _Value, layout: Layout, batch: BatchPlace | None) -> _Value:
        """A tensor as a layout has it.

        Args:
            value: As the layout's source.
            layout: The way there.
            batch: Where the batch is before.
        """
        place = value.place
        view, axes, after = layout.view, layout.axes, layout.target
        moved = tuple(view[axis] for axis in axes)
        within = None if batch is None else place_in_shape(batch, layout.source, view)
        behind = _place_behind(layout, batch)
        for operator, name, given, needed in (
            ("Reshape", "shape", _open(view, within), view != layout.source),
            ("Transpose", "perm", axes, axes != tuple(range(len(axes)))),
            ("Reshape", "shape", _open(after, behind), after != moved),
        ):
            if needed:
                self._operations.append(Operation(operator, (place,), {name: given}))
                place = len(self._operations) - 1
        return _Value(place, tuple(range(len(after))))

    def _in_order(self, value: _Value, perm: Perm) -> _Value:
        """The same numbers, with the axes in a wanted order."""
        if value.perm == perm:
            return value
        key = value.place, perm
        if key not in self._turned:
            order = tuple(value.perm.index(axis) for axis in perm)
            self._operations.append(Operation("Transpose", (value.place,), {"perm": order}))
            self._turned[key] = _Value(len(self._operations) - 1, perm)
        return self._turned[key]

    def _wanted(self, node: Node, read: Sequence[_Value]) -> Perm:
        """The order of axes in which an operator can read its operands."""
        rank = max((len(value.perm) for value in read), default=0)
        plain = tuple(range(rank))
        full = [value.perm for value in read if len(value.perm) == rank]
        first = next((perm for perm in full if not _is_plain(perm)), plain)
        if node.op in CHANNELLED and rank > 1:
            last = (0, *range(2, rank), 1) if not node.channels_last else (0, rank - 1, *range(1, rank - 1))
            return first if first in {plain, last} else plain
        cuts = node.op == "Pad" or (node.op == "Slice" and node.attributes.get("axes") is not None)
        free = cuts or node.op in _ALONG or node.op in ELEMENTWISE_BINARY or is_elementwise(node)
        return first if free and "slope" not in node.parameters else plain

    def _of_any_batch(self, operation: Operation, node: Node) -> Operation:
        """A shape of which the batch's size is left open: what is left, or, where it's broadcast, as it is."""
        shape = operation.attributes.get("shape")
        batch = self._batches.get(node.outputs[0])
        left = _LEFT_OPEN.get(node.op)
        if left is None or not isinstance(shape, tuple) or batch is None:
            return operation
        return replace(operation, attributes={"shape": _open(tuple(int(size) for size in shape), batch, left)})


def _of_one_result(node: Node) -> Iterator[Node]:
    """A split as what it takes for each of its results; any other node as it is."""
    axis, sizes = node.attributes.get("axis"), node.attributes.get("sizes")
    if node.op != "Split" or not isinstance(axis, int) or not isinstance(sizes, tuple):
        yield node
        return
    ends = [int(end) for end in np.cumsum(sizes)]
    for name, start, end in zip(node.outputs, [0, *ends], ends, strict=False):
        taken = {"axes": (axis,), "starts": (start,), "ends": (end,), "steps": (1,)}
        if name:
            yield replace(node, op="Slice", outputs=(name,), attributes=taken)


def _with_constants(node: Node, constants: Mapping[str, Array]) -> Node:
    """A node whose inputs that are constants are its parameters.

    Raises:
        NotEditableError: if it's an operator that has no parameter for them.
    """
    given = [place for place, name in enumerate(node.inputs) if name in constants]
    if not given:
        return node
    operator = OPERATORS.get(node.op)
    if operator is None or "constant_first" not in operator.attributes or len(given) > 1:
        raise NotEditableError(f"{node.op} can't read a constant in place of its input {node.inputs[given[0]]}")
    array = constants[node.inputs[given[0]]]
    return replace(
        node,
        inputs=tuple(name for name in node.inputs if name not in constants),
        attributes={**node.attributes, "constant_first": given == [0] and node.op not in COMMUTATIVE},
        parameters={"operand": Parameter("", array.shape, str(array.dtype), array.copy)},
    )


def _turned(operation: Operation, node: Node, perm: Perm, shape: tuple[int, ...] | None) -> tuple[Operation, Perm]:
    """An operator for operands whose axes are in another order, and the order of its result's axes.

    Args:
        operation: The operator.
        node: That it was.
        perm: The order.
        shape: Of what the node gives; as many axes as its operands where that isn't known.
    """
    if _is_plain(perm):
        return operation, tuple(range(len(perm if shape is None else shape)))
    if node.op in CHANNELLED:
        return replace(operation, channels_last=not operation.channels_last), perm
    attributes = dict(operation.attributes)
    name = _ALONG.get(node.op)
    if name is not None:
        attributes[name] = _moved(attributes.get(name), perm)
    if node.op == "Slice" and isinstance(axes := attributes.get("axes"), tuple):
        attributes["axes"] = tuple(perm.index(int(axis)) for axis in axes)
    if node.op == "Pad" and isinstance(pads := attributes.get("pads"), tuple):
        half = len(pads) // 2
        attributes["pads"] = tuple(int(pads[begin + axis]) for begin in (0, half) for axis in perm)
    parameters = {role: _spread(array, perm) for role, array in operation.parameters.items()}
    turned = replace(operation, attributes=attributes, parameters=parameters)
    if node.op.startswith("Reduce") and not attributes.get("keepdims", True):
        axes = node.attributes.get("axes")
        gone = {int(axis) for axis in axes} if isinstance(axes, tuple) else set(perm)
        left = [axis for axis in perm if axis not in gone]
        return turned, tuple(sorted(left).index(axis) for axis in left)
    return turned, perm


def _moved(value: Attribute, perm: Perm) -> Attribute:
    if isinstance(value, tuple):
        return tuple(sorted(perm.index(int(axis)) for axis in value))
    return None if value is None else perm.index(as_integer(value) % len(perm))


def _spread(array: Array, perm: Perm) -> Array:
    """A constant that is broadcast with a tensor, as it's broadcast with the tensor in another order."""
    if array.ndim == 0 or array.size == 1:
        return array
    return array.reshape((1,) * (len(perm) - array.ndim) + array.shape).transpose(perm)


def _is_plain(perm: Perm) -> bool:
    return perm == tuple(range(len(perm)))


def perm_of(layout: Layout) -> Perm | None:
    """The order of axes, where a layout is no more than that."""
    if len(layout.source) != len(layout.target):
        return None
    where = axis_map(layout)
    perm = tuple(sorted(where, key=where.__getitem__))
    whole = sorted(where.values()) == list(range(len(layout.target))) and sorted(perm) == sorted(where.values())
    same = whole and tuple(layout.source[axis] for axis in perm) == layout.target
    return perm if same else None


def _open(shape: tuple[int, ...], batch: BatchPlace | None, left: int = -1) -> tuple[int, ...]:
    """A shape that holds for any batch."""
    return shape if batch is None else (*shape[: batch.axis], left, *shape[batch.axis + 1 :])


def _place_behind(layout: Layout, batch: BatchPlace | None) -> BatchPlace | None:
    """Where the batch is at the end of a layout."""
    within = None if batch is None else place_in_shape(batch, layout.source, layout.view)
    if within is None:
        return None
    moved = tuple(layout.view[axis] for axis in layout.axes)
    return place_in_shape(replace(within, axis=layout.axes.index(within.axis)), moved, layout.target)

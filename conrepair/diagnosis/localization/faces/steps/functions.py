"""What nodes compute in NumPy, and which function an elementwise piece is, told by its values on a grid."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.numbers import naming
from conrepair.formats.editing.operation import operation_of, what_is_read
from conrepair.ground.graph.layer_graph import Attribute, LayerGraph, Node
from conrepair.ground.graph.operators import OPERATORS
from conrepair.ground.operators.record import Operator

Values = npt.NDArray[np.float64]

GRID: Values = np.concatenate([np.linspace(-12, 12, 193), np.linspace(-4, 4, 1601), [-100.0, 100.0]])
"""Where functions are compared: finely where they bend."""

_FINE = slice(193, 1794)  # where the grid is dense
_LAST = ("slope", "scale", "bias")  # roles that operators read behind all others, in their records' order
_SIZED = {"Reshape", "Expand"}  # to a shape, which the graph knows

_RECORDS: Mapping[str, Operator] = {
    **OPERATORS,
    "Rescaling": Operator(
        *(lambda x, scale, offset: scale * x + offset, "", {}, {"scale": 1.0, "offset": 0.0}), operands=1
    ),
    "SquaredDifference": Operator(lambda one, two: np.square(one - two), "", operands=2),
}
"""By name, with what only frameworks' own operators compute."""

_OTHERWISE: Mapping[str, Mapping[str, Attribute]] = {"HardSigmoid": {"alpha": 1 / 6}, "Gelu": {"approximate": "tanh"}}
"""Attributes that are as usual as those that operators have when nothing is said."""

KNOWN: Sequence[tuple[str, Mapping[str, Attribute]]] = [
    (name, OPERATORS[name].given(attributes))
    for name, item in OPERATORS.items()
    if name == "Identity" or (item.family.startswith("function") and item.operands == 1 and not item.exact)
    for attributes in ({}, *([_OTHERWISE[name]] if name in _OTHERWISE else ()))
]
"""Functions that frameworks write in several operators, as the operator that says it in one, and its attributes."""


@functools.cache
def _on_grid(place: int) -> Values:
    """One of them on the grid; made when it's asked for, as some take SciPy, which takes a tenth of a second."""
    name, attributes = KNOWN[place]
    return np.asarray(OPERATORS[name].compute(GRID, **attributes))


def is_elementwise(node: Node) -> bool:
    """Whether a node computes each element from the elements at the same place, and numbers for the whole tensor."""
    record = _RECORDS.get(node.op)
    if record is None or record.logical or any(math.prod(item.shape) != 1 for item in node.parameters.values()):
        return False
    if any(isinstance(value, tuple) for value in node.attributes.values()):
        return False  # a number for each channel
    read = len([*filter(None, node.inputs), *node.parameters])
    return read == record.operands > 0 or node.op == "Where"


def same_function(one: Values, two: Values) -> bool:
    """Whether two results on the grid are the same up to rounding."""
    finite = np.isfinite(one) & np.isfinite(two)
    if not np.array_equal(np.isfinite(one), np.isfinite(two)):
        return False
    return bool(np.all(np.abs(one - two)[finite] <= naming.SINGLE * (1 + np.abs(one[finite]))))


def known_function(values: Values) -> tuple[str, Mapping[str, Attribute]] | None:
    """The function that values on the grid are: its operator and attributes."""
    known = (function for place, function in enumerate(KNOWN) if same_function(_on_grid(place), values))
    return next(known, None) or _clipped(values) or _stepped(values)


def _clipped(values: Values) -> tuple[str, Mapping[str, Attribute]] | None:
    low, high = float(values.min()), float(values.max())
    if not same_function(np.clip(GRID, low, high), values):
        return None
    return "Clip", {"min": low if low > GRID.min() else None, "max": high if high < GRID.max() else None}


def _stepped(values: Values) -> tuple[str, Mapping[str, Attribute]] | None:
    """Rounding to a lattice: level on short stretches, in steps of one height, never far from what it stands for."""
    fine = values[_FINE]
    changes = np.diff(fine)
    jumps = np.abs(changes[np.abs(changes) > naming.SINGLE])
    if not 2 < jumps.size <= naming.JUMPS * changes.size or not np.isfinite(fine).all():
        return None
    step = float(jumps.min())
    if not np.allclose(jumps / step, np.round(jumps / step), atol=1e-2):
        return None
    inside = (fine > fine.min()) & (fine < fine.max())
    if np.abs(fine - GRID[_FINE])[inside].max(initial=0) > step * (1 + naming.SINGLE):
        return None
    return "Rounding", {"step": step}


def evaluate(nodes: Sequence[Node], begin: str, end: str) -> Values | None:
    """Compute elementwise nodes on the grid.

    Args:
        nodes: In order, all elementwise.
        begin: The only tensor that is read from outside.
        end: The tensor that is wanted.

    Returns:
        Values on `GRID`; None when something can't be computed.
    """
    found = (compute(nodes, {begin: GRID}) or {}).get(end)
    return None if found is None else found.reshape(GRID.shape)  # a lone number may have more axes


def compute(
    nodes: Sequence[Node], known: Mapping[str, Values], graph: LayerGraph | None = None
) -> dict[str, Values] | None:
    """Compute nodes in float64.

    Args:
        nodes: In order.
        known: What they read from outside, by the tensors' names.
        graph: Has the tensors' shapes, for nodes that give another one.

    Returns:
        All tensors by name; None when a node isn't one of those that can be computed here.
    """
    values = dict(known)
    with np.errstate(all="ignore"):
        for node in nodes:
            if any(name not in values for name in node.inputs if name):
                return None
            read = [values[name] for name in node.inputs if name]
            try:
                made = _value(node, read, graph)
                results = made if isinstance(made, list) else [made]
                values |= {
                    name: np.asarray(result, np.float64) for name, result in zip(node.outputs, results, strict=True)
                }
            except (TypeError, ValueError, LookupError, NotImplementedError):
                return None  # not said, or shapes or types that don't fit: a changed node may make them so
    return values


def _value(node: Node, read: Sequence[Values], graph: LayerGraph | None) -> object:
    """What a node computes of its operands; a list where it has several results.

    Raises:
        ValueError: if something else that it reads follows from sizes, or isn't said.
    """
    record, count, sized = _RECORDS[node.op], len(read) + len(node.parameters), node.op in _SIZED
    if (node.sizes and not sized) or count != (record.operands or count):
        raise ValueError(f"{node.op} reads {count} operands")
    operation = operation_of(replace(node, outputs=node.outputs[:1]))
    values = what_is_read(operation, read, lambda array: array.astype(np.float64))
    last = [node.parameters.get(role) for role in record.parameters if role in _LAST]
    values += [parameter.numpy().astype(np.float64) for parameter in itertools.takewhile(bool, last) if parameter]
    if len(values) != count:
        raise ValueError(f"{node.op} reads {len(values)} of {count} operands")
    shape = graph.tensors[node.outputs[0]].shape if graph and sized else node.attributes.get("shape")
    return record.compute(*values, **{**node.attributes, "shape": shape})

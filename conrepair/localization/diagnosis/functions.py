"""What an elementwise piece of a network computes, told by its values on a grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from conrepair.editors.operation import operation_of, what_is_read
from conrepair.graph.attributes import as_real
from conrepair.graph.layer_graph import Attribute, Node
from conrepair.graph.operators import OPERATORS
from conrepair.operators.record import Operator

__all__ = ["BINARY", "GRID", "KNOWN", "UNARY", "is_elementwise", "known_function", "run", "same_function"]

Values = npt.NDArray[np.float64]

GRID: Values = np.concatenate([np.linspace(-12, 12, 193), np.linspace(-4, 4, 1601), [-100.0, 100.0]])
"""Where functions are compared: finely where they bend."""

_CLOSE = 1e-6
_AFFINE = ("scale", "offset")
_FINE = slice(193, 1794)  # where the grid is dense
_MOST_JUMPS = 0.6  # of neighbours on the dense part; a smooth function changes at each


def _of(operator: Operator) -> Callable[[Values, Mapping[str, Attribute]], Values]:
    return lambda x, attributes: np.asarray(operator.compute(x, **attributes))


UNARY: Mapping[str, Callable[[Values, Mapping[str, Attribute]], Values]] = {
    **{name: _of(item) for name, item in OPERATORS.items() if item.operands == 1 and not item.logical},
    "Rescaling": lambda x, a: as_real(a.get("scale", 1.0)) * x + as_real(a.get("offset", 0.0)),
}
"""By operator: functions of values and of a node's attributes."""

BINARY = frozenset(
    name for name, item in OPERATORS.items() if item.family.startswith("arithmetic") or item.family == "comparison"
)
"""Operators of two tensors, or of one and a constant."""

KNOWN: Mapping[str, tuple[str, Mapping[str, Attribute]]] = {
    "ReLU": ("Clip", {"min": 0.0, "max": None}),
    "ReLU6": ("Clip", {"min": 0.0, "max": 6.0}),
    "HardSwish": ("HardSwish", {}),
    "HardSigmoid (1/6)": ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}),
    "HardSigmoid (0.2)": ("HardSigmoid", {"alpha": 0.2, "beta": 0.5}),
    "SiLU": ("Swish", {"alpha": 1.0}),
    "exact GELU": ("Gelu", {"approximate": "none"}),
    "GELU by tanh": ("Gelu", {"approximate": "tanh"}),
    "Mish": ("Mish", {}),
    "sigmoid": ("Sigmoid", {}),
    "tanh": ("Tanh", {}),
    "softplus": ("Softplus", {}),
    "SELU": ("Selu", {}),
    "ELU": ("Elu", {"alpha": 1.0}),
    "the identity": ("Identity", {}),
}
"""Functions that frameworks write in several operators, with the operator that says it in one."""


def is_elementwise(node: Node) -> bool:
    """Whether a node computes each element from the elements at the same place, and numbers for the whole tensor."""
    if node.op == "Where":
        return all(all(size == 1 for size in parameter.shape) for parameter in node.parameters.values())
    if node.op == "Rescaling" and not all(isinstance(node.attributes.get(name), int | float) for name in _AFFINE):
        return False
    if node.op in UNARY:
        return all(parameter.shape in ((), (1,)) for parameter in node.parameters.values())
    if node.op not in BINARY:
        return False
    if "operand" not in node.parameters:
        return len(node.inputs) == 2
    return all(size == 1 for size in node.parameters["operand"].shape)


def same_function(one: Values, two: Values) -> bool:
    """Whether two results on the grid are the same up to rounding."""
    finite = np.isfinite(one) & np.isfinite(two)
    if not np.array_equal(np.isfinite(one), np.isfinite(two)):
        return False
    return bool(np.all(np.abs(one - two)[finite] <= _CLOSE * (1 + np.abs(one[finite]))))


def known_function(values: Values) -> tuple[str, str, Mapping[str, Attribute]] | None:
    """The function that values on the grid are: in words, its operator and attributes."""
    for words, (operator, attributes) in KNOWN.items():
        if same_function(UNARY[operator](GRID, attributes), values):
            return words, operator, attributes
    return _clipped(values) or _stepped(values)


def _clipped(values: Values) -> tuple[str, str, Mapping[str, Attribute]] | None:
    low, high = float(values.min()), float(values.max())
    if not same_function(np.clip(GRID, low, high), values):
        return None
    bounds: dict[str, Attribute] = {
        "min": low if low > GRID.min() else None,
        "max": high if high < GRID.max() else None,
    }
    return f"a clipping to {low:g} and {high:g}", "Clip", bounds


def _stepped(values: Values) -> tuple[str, str, Mapping[str, Attribute]] | None:
    """Rounding to a lattice: level on short stretches, in steps of one height, never far from what it stands for."""
    fine = values[_FINE]
    changes = np.diff(fine)
    jumps = np.abs(changes[np.abs(changes) > _CLOSE])
    if not 2 < jumps.size <= _MOST_JUMPS * changes.size or not np.isfinite(fine).all():
        return None
    step = float(jumps.min())
    if not np.allclose(jumps / step, np.round(jumps / step), atol=1e-2):
        return None
    inside = (fine > fine.min()) & (fine < fine.max())
    if np.abs(fine - GRID[_FINE])[inside].max(initial=0) > step * (1 + _CLOSE):
        return None
    return f"a rounding to steps of {step:g}", "Rounding", {"step": step}


def run(node: Node, operands: Sequence[Values]) -> Values | None:
    """What an elementwise node computes of its operands; None of others, or of another number of operands."""
    if node.op in UNARY and len(operands) == 1:
        return np.asarray(UNARY[node.op](operands[0], node.attributes))
    if node.op != "Where" and node.op not in BINARY:
        return None
    record = OPERATORS[node.op]
    if len(operands) + len(node.parameters) != record.operands:
        return None  # one of what it reads follows from sizes
    values = what_is_read(operation_of(node), operands, lambda array: array.astype(np.float64))
    return np.asarray(record.compute(*values))

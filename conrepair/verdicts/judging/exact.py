"""What a network computes when nothing is rounded, with how far a right computation may be from it.

The source *network* is the specification, and the source's runtime one computation of it, with errors of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from conrepair.formats.networks.network import Network
from conrepair.ground.data.tensor_spec import numpy_dtype
from conrepair.ground.graph.layer_graph import Array, Node
from conrepair.ground.graph.operators import OPERATORS, PRODUCTS
from conrepair.ground.runtime.words import times
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.truth.bound import ACCURACY, Analysis
from conrepair.verdicts.truth.judging import beside
from conrepair.verdicts.truth.referees import CannotJudgeError, OnnxRuntime

if TYPE_CHECKING:
    from onnx import ModelProto

_SLOW = 1e5  # times as much for a result of what ONNX's reference computes in loops of Python
_SAME = 1e-9  # relative, of two computations in float64


@dataclass(frozen=True)
class Exact:
    """Tensors of a piece of a network on one batch.

    Attributes:
        model: The piece.
        feeds: Of it, by its inputs.
        values: In float64, by name.
        bounds: The largest error that rounding explains of each element, by name.
        estimated: Tensors whose bounds rest on an estimate.
        work: That it took, as `numbers.WORK` has it.
    """

    model: ModelProto
    feeds: Mapping[str, Array]
    values: Mapping[str, Array]
    bounds: Mapping[str, Array]
    estimated: frozenset[str]
    work: float


@dataclass(frozen=True)
class Kernel:
    """An operator that a runtime computes with an error beyond rounding.

    Attributes:
        operator: In the vocabulary.
        layer: Whose it is.
        bounds: Its error, in bounds.
    """

    operator: str
    layer: str
    bounds: float

    def __str__(self) -> str:
        """For a person."""
        return (
            f"{self.operator} (layer `{self.layer}`) is {times(self.bounds)} its rounding error off (`conrepair "
            f"accuracy --operator {self.operator}` measures it over all magnitudes)"
        )


def exact_values(
    network: Network, feeds: Mapping[str, Array], wanted: Sequence[str], *, most: float | None = None
) -> Exact | None:
    """Compute tensors, and those on the way to them, in float64 from others, with running bounds of their errors.

    Args:
        network: Whose.
        feeds: By tensor.
        wanted: Tensors.
        most: Work that it may be; None: `numbers.WORK`.

    Returns:
        None where that's too much work, or where nobody can do it.
    """
    work = work_of(network, feeds, wanted)
    if work > (numbers.WORK if most is None else most):
        return None
    piece = network.as_onnx(tuple(feeds), wanted)
    if piece is None:
        return None
    given = {piece.feeds[name]: np.asarray(array) for name, array in feeds.items() if name in piece.feeds}
    try:
        found = Analysis(piece.model).at(given, ACCURACY)
    except Exception:  # noqa: BLE001 (ONNX's reference raises a dozen types for what it doesn't know)
        return None
    tensors = network.graph.tensors
    values = {name: value for name, value in found.truth.items() if name in tensors and isinstance(value, np.ndarray)}
    bounds = {name: np.broadcast_to(found.bound[name], value.shape) for name, value in values.items()}
    return Exact(piece.model, given, values, bounds, frozenset(found.estimated), work)


def first_wrong_kernel(network: Network, exact: Exact) -> Kernel | None:
    """The first operator that a runtime, fed exact values, computes with a larger error than rounding explains.

    Args:
        network: As the runtime computes it.
        exact: All of its tensors.

    Returns:
        None where there's none, or where nobody else says that it's the runtime's error.
    """
    graph = network.graph
    known = {name for name in exact.values if graph.tensors[name].observable}
    nearest = graph.feeding(known)
    for name in sorted(known - set(graph.inputs), key=graph.order.__getitem__):
        types = {fed: numpy_dtype(graph.tensors[fed].dtype) for fed in (*graph.inputs, *nearest.get(name, ()))}
        feeds = {fed: exact.values[fed].astype(kind) for fed, kind in types.items()}
        piece = exact_values(network, feeds, [name])
        if piece is None or name in piece.estimated:
            continue
        given = network.segment(tuple(feeds), [name]).run(feeds)[name]
        if given.shape == piece.values[name].shape:
            found = beside(given, piece.values[name], piece.bounds[name])
            if found.beyond:
                node = graph.producers[name]
                known_well = is_confirmed(network, feeds.keys(), piece, name)
                return Kernel(node.op, node.layer, found.bounds) if known_well else None
    return None


def is_confirmed(network: Network, fed: Collection[str], exact: Exact, name: str) -> bool:
    """Whether somebody else computes what ONNX's reference does, which forgets what older opsets say.

    Functions of single numbers are ours, and tested as such; of all else ONNX Runtime must say the same in float64.

    Args:
        network: Whose piece it is.
        fed: Tensors that it's computed from.
        exact: Its values.
        name: Of the tensor.
    """
    nodes = network.graph.between(fed, [name])
    if all(node.op in OPERATORS and OPERATORS[node.op].operands for node in nodes):
        return True
    try:
        other = OnnxRuntime().answers(exact.model, exact.feeds)[name]
    except CannotJudgeError:
        return False
    right = exact.values[name]
    size = np.abs(right[np.isfinite(right)]).max(initial=0.0)
    return other.shape == right.shape and bool(
        np.allclose(other, right, rtol=_SAME, atol=_SAME * size, equal_nan=True)
    )


def work_of(network: Network, fed: Mapping[str, Array], wanted: Sequence[str], *, slow: float = _SLOW) -> float:
    """Products times bytes of a result: of each sum its results times its terms, of all others their elements.

    Args:
        network: Whose.
        fed: Tensors that are given.
        wanted: Tensors that are computed from these.
        slow: Times as much of what ONNX's reference computes in loops.
    """
    return sum(_products(network, node, slow) for node in network.graph.between(fed.keys(), wanted))


def _products(network: Network, node: Node, slow: float) -> float:
    record, sums = OPERATORS.get(node.op), node.op in PRODUCTS
    in_loops = record is None or bool(record.unbounded) or (isinstance(record.value, str) and not sums)
    size = max((network.graph.tensors[name].nbytes or 0 for name in (*node.outputs, *node.inputs) if name), default=0)
    return size * (slow if in_loops else 1.0) * (network.graph.terms(node) if sums else 1)

"""What a network computes when nothing is rounded, with how far a right computation may be from it.

The source *network* is the specification, and the source's runtime one computation of it, with errors of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.data.tensor_spec import numpy_dtype
from conrepair.graph.layer_graph import Array, Node
from conrepair.graph.operators import OPERATORS, PRODUCTS
from conrepair.judging import numbers
from conrepair.networks.network import Network
from conrepair.truth.bound import ACCURACY, Analysis
from conrepair.truth.judging import beside
from conrepair.truth.referees import CannotJudgeError, OnnxRuntime

_SLOW = 1e5  # times as much for a result of what ONNX's reference computes in loops of Python
_SAME = 1e-9  # relative, of two computations in float64


@dataclass(frozen=True)
class Exact:
    """Tensors of a network on one batch.

    Attributes:
        values: In float64, by name.
        bounds: The largest error that rounding explains of each element, by name.
        estimated: Tensors whose bounds rest on an estimate.
        work: That it took, as `numbers.WORK` has it.
    """

    values: Mapping[str, Array]
    bounds: Mapping[str, Array]
    estimated: frozenset[str] = frozenset()
    work: float = 0.0


@dataclass(frozen=True)
class Kernel:
    """An operator that a runtime computes with a larger error than rounding explains.

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
            f"{self.operator} (`{self.layer}`) by {self.bounds:.1e} times what rounding explains of it (`conrepair "
            f"accuracy --operator {self.operator}` measures it over all magnitudes)"
        )


def exact_values(
    network: Network,
    feeds: Mapping[str, Array],
    wanted: Sequence[str],
    *,
    all_tensors: bool = False,
    most: float | None = None,
) -> Exact | None:
    """Compute tensors in float64 from others, with running bounds of their errors.

    Args:
        network: Whose.
        feeds: By tensor.
        wanted: Tensors.
        all_tensors: Whether tensors on the way are given, too.
        most: Work that it may be; None: `numbers.WORK`.

    Returns:
        None where that's too much work, or where nobody can do it.
    """
    work = _work(network, feeds, wanted)
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
    names = [name for name in found.truth if all_tensors and name in network.graph.tensors] or wanted
    real = [name for name in names if isinstance(found.truth[name], np.ndarray)]
    bounds = {name: np.broadcast_to(found.bound[name], found.truth[name].shape) for name in real}
    return Exact({name: found.truth[name] for name in real}, bounds, frozenset(found.estimated), work)


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
                known_well = is_confirmed(network, feeds, piece, name)
                return Kernel(node.op, node.layer, found.bounds) if known_well else None
    return None


def is_confirmed(network: Network, feeds: Mapping[str, Array], exact: Exact, name: str) -> bool:
    """Whether somebody else computes what ONNX's reference does, which forgets what older opsets say.

    Functions of single numbers are ours, and tested as such; of all else ONNX Runtime must say the same in float64.

    Args:
        network: Whose piece it is.
        feeds: Of the piece.
        exact: Its values.
        name: Of the tensor.
    """
    nodes = network.graph.between(feeds.keys(), [name])
    if all(node.op in OPERATORS and OPERATORS[node.op].operands for node in nodes):
        return True
    piece = network.as_onnx(tuple(feeds), [name])
    if piece is None:
        return False
    given = {piece.feeds[fed]: np.asarray(array) for fed, array in feeds.items() if fed in piece.feeds}
    try:
        other = OnnxRuntime().answers(piece.model, given)[name]
    except CannotJudgeError:
        return False
    right = exact.values[name]
    size = np.abs(right[np.isfinite(right)]).max(initial=0.0)
    return other.shape == right.shape and bool(
        np.allclose(other, right, rtol=_SAME, atol=_SAME * size, equal_nan=True)
    )


def is_sharp(right: Array, bound: Array, most: float) -> bool:
    """Whether bounds are so small that what's within them is right: all together, and in each slice.

    Args:
        right: Exact values, samples first.
        bound: Of each element.
        most: Relative L2 that they may have all together.
    """
    if float(np.linalg.norm(bound)) > most * float(np.linalg.norm(right)):
        return False
    for axis in range(1, right.ndim):
        rest = tuple(other for other in range(right.ndim) if other != axis)
        sizes, bounds = (np.sqrt(np.square(array.astype(np.float64)).sum(rest)) for array in (right, bound))
        if np.any(bounds > max(most, numbers.SHARP) * sizes):
            return False
    return True


def _work(network: Network, fed: Mapping[str, Array], wanted: Sequence[str]) -> float:
    """Products, roughly: of each sum its results times its terms, and of all others their elements."""
    return sum(_products(network, node) for node in network.graph.between(fed.keys(), wanted))


def _products(network: Network, node: Node) -> float:
    record = OPERATORS.get(node.op)
    price = _SLOW if record is None or (isinstance(record.value, str) and node.op not in PRODUCTS) else 1.0
    price = price if record is None or not record.unbounded else _SLOW
    size = max((network.graph.tensors[name].nbytes or 0 for name in (*node.outputs, *node.inputs) if name), default=0)
    weights = [item.shape for item in node.parameters.values() if len(item.shape) > 1] if node.op in PRODUCTS else []
    return float(price * size * max((np.prod(shape) / max(shape[0], shape[-1]) for shape in weights), default=1))

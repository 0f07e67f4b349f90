"""Follow an error through kernels: which adds, amplifies or cancels it, beside exact values and the other side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from conrepair.formats.networks.network import Network
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.metrics.ulps import grid_of, ulps
from conrepair.verdicts.truth.judging import beside, distances

_CHANGED = 4.0  # times as large or as small
_MOST_OF_IT = 0.5
_LEAST = {"float16": 2.0**-11, "float64": 2.0**-53}  # what rounding alone comes to
_ROUNDING = 2.0**-24
_FEW = 0.25  # of the kernels, that are apart where both sides compute alike
# Elsewhere right ones are less than so many units in the last place apart, or less than that share of the bound of
# rounding: one of 200 kernels with fast math was further.
_UNITS, _SHARE = 8.0, 0.2


@dataclass(frozen=True)
class KernelError:
    """The error of a tensor that a kernel writes; relative to the tensor's root of mean squares.

    Attributes:
        tensor: Its name in the network.
        kernel: Names of what computes it: kernels of a build, else the layer.
        operators: Kinds of the layers that these stand for.
        reads: Tensors that the kernel reads, of those that can be seen.
        incoming: The largest error among those.
        introduced: The error of the kernel alone, on exact values that are rounded to its type.
        over: The same of the worst element in bounds of rounding: above 1 the kernel is wrong.
        outgoing: The error of the tensor in the run.
        change: What the kernel does to the error that it's given: "exact" (there's none), "generated" (it's wrong by
            itself), "differs" (it's right, and the other side's kernel gives something else on the same values; where
            both sides compute otherwise, more than right kernels do), "rounded" (it's right, and most of the error is
            its rounding), "amplified", "damped", "cancelled" or "passed on".
        finite: Whether all that the kernel writes is finite where the exact values are.
        apart: The largest distance to what the other side's kernels make of the same exact values, in units in the
            last place; None where that side isn't there, or doesn't show the tensor and what it's computed from.
        culprits: Of a kernel of several operators that generated an error, those that do so as kernels of their own
            ("Tanh 'b'"): none where it's their fusion. None where it wasn't looked into.
    """

    tensor: str
    kernel: tuple[str, ...]
    operators: tuple[str, ...]
    reads: tuple[str, ...]
    incoming: float
    introduced: float
    over: float
    outgoing: float
    change: str
    finite: bool = True
    apart: float | None = None
    culprits: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Replayed:
    """A run through a network, and each kernel alone.

    Attributes:
        errors: By the graph's order.
        values: Tensors of the run, by name.
        given: Exact values rounded to the tensors' types, which each kernel alone was given.
        alone: What each kernel made of these.
        right: What it should have made of them, in float64.
    """

    errors: tuple[KernelError, ...] = ()
    values: Mapping[str, Array] = field(default_factory=dict)
    given: Mapping[str, Array] = field(default_factory=dict)
    alone: Mapping[str, Array] = field(default_factory=dict)
    right: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class KernelPair:
    """What computes the same tensor on both sides.

    Attributes:
        one: A tensor of the first side.
        two: The tensor of the other side; None where that computes it inside a kernel.
        confidence: 1 where both have the tensor's name, less where their values alone tell.
    """

    one: str
    two: str | None
    confidence: float


Pieces = Callable[[Mapping[str, Array]], tuple[Mapping[str, Array], Mapping[str, Array]]]
"""Computes tensors in float64, each from what it's given of those in front of it (as `Network.segment` does), and the
bounds of a right kernel's errors."""


def replay(
    network: Network,
    feeds: Mapping[str, Array],
    exact: Mapping[str, Array],
    pieces: Pieces,
    other: Network | None = None,
) -> Replayed:
    """Follow the error of one run through a network.

    Each kernel is run twice: in the run as it is, and on exact values that are rounded to its type, where float64
    tells what it should have made of these: the difference is what it adds by itself, however much it amplifies what
    it's given. That's done at once for all kernels, as a piece of a network may be cut at every tensor.

    The other side's kernels are run on the same exact values. Where three of four of both sides' give the same bits,
    as builds with and without optimizations do that keep the order of operations, a single unit in the last place
    tells the others, which no bound of rounding shows.

    Args:
        network: As a system runs it, of float tensors.
        feeds: A batch, by the graph's inputs.
        exact: float64 values of tensors by name, the outputs among them.
        pieces: Given the rounded values, what each tensor is when it's computed from them.
        other: The side that it's compared with, whose tensors have these names; None where it can't be looked into.

    Returns:
        Of the tensors that can be seen and have exact values.

    Raises:
        InferenceError: if the framework fails.
    """
    graph = network.graph
    written = [name for node in graph.nodes for name in node.outputs]
    seen = [name for name in written if graph.tensors[name].observable and name in exact and name not in feeds]
    if not seen:
        return Replayed()
    values = network.segment(tuple(feeds), seen).run(feeds)
    given = {name: exact[name].astype(values[name].dtype) for name in seen}
    alone = network.segment((*feeds, *seen), seen).run({**feeds, **given})
    right, bound = pieces({**feeds, **given})
    outgoing = {name: _largest_error(values[name], exact[name]) for name in seen}
    feeding = graph.feeding({*seen, *graph.inputs})
    sources = {name: feeding[name] for name in seen}
    there = {} if other is None else _alone(other, {**feeds, **given}, sources)
    apart = {name: float(ulps(alone[name], array.astype(np.float64)).max()) for name, array in there.items()}
    differs = {name for name, units in apart.items() if units}
    if len(differs) > max(_FEW * len(apart), 1):  # the sides compute otherwise
        differs = {name for name in differs if _far(alone[name], there[name], bound[name])}
    found = []
    for name in seen:
        reads = sources[name]
        incoming = max((outgoing[item] for item in reads if item in outgoing), default=0.0)
        introduced = _largest_error(alone[name], right[name])
        over = beside(alone[name], right[name], bound[name]).bounds
        least = max(incoming, _LEAST.get(graph.tensors[name].dtype, _ROUNDING))
        change = _change(least, introduced, over, outgoing[name], differs=name in differs)
        finite = bool(np.isfinite(values[name])[np.isfinite(exact[name])].all())
        own = name, *_computed_by(network, name), reads
        found.append(KernelError(*own, incoming, introduced, over, outgoing[name], change, finite, apart.get(name)))
    return Replayed(tuple(found), values, {**feeds, **given}, alone, right)


def _largest_error(given: Array, exact: Array) -> float:
    """Of an element, relative to the root of mean squares of what's finite; infinite for NaN and other shapes."""
    real = np.isfinite(exact)
    if not np.array_equal(np.isfinite(given), real):
        return float("inf")
    error = np.abs(given.astype(np.float64)[real] - exact[real])
    if not error.size or not error.max():
        return 0.0
    scale = float(np.sqrt(np.mean(np.square(exact[real]))))
    return float(error.max()) / scale if scale else float("inf")


def _alone(network: Network, given: Mapping[str, Array], sources: Mapping[str, Sequence[str]]) -> Mapping[str, Array]:
    """What kernels make of given values, of real tensors that are shown with all that they're computed from."""
    tensors = network.graph.tensors
    shown = {name for name in given if name in tensors and tensors[name].observable}
    real = {name for name in shown if given[name].size and given[name].dtype.kind == "f"}
    wanted = [name for name, reads in sources.items() if name in real and shown.issuperset(reads)]
    return network.segment(tuple(shown), wanted).run({name: given[name] for name in shown}) if wanted else {}


def _far(one: Array, two: Array, bound: Array) -> bool:
    """Whether kernels that compute otherwise are further apart than right ones are."""
    other = two.astype(np.float64)
    usual = np.maximum(_UNITS * grid_of(one.dtype).ulp(other), _SHARE * bound)
    return bool((distances(one, other) > usual).any())


def _change(incoming: float, introduced: float, over: float, outgoing: float, *, differs: bool) -> str:
    if outgoing and over > 1:
        return "generated"
    if differs:
        return "differs"
    if outgoing == 0:
        return "cancelled" if incoming > _ROUNDING else "exact"
    if introduced >= _MOST_OF_IT * outgoing:
        return "rounded"
    if outgoing > _CHANGED * incoming:
        return "amplified"
    if outgoing * _CHANGED < incoming:
        return "damped"
    return "passed on"


def _computed_by(network: Network, tensor: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    kernel = network.kernel(tensor)
    if kernel is not None:
        return kernel.functions, tuple(kind for _, kind in kernel.operators)
    node = network.graph.producers[tensor]
    return (node.layer,), (node.native,)


def matched(one: Mapping[str, Array], two: Mapping[str, Array]) -> list[KernelPair]:
    """Pair the tensors of both sides: by name, and where names are lost by shape and values.

    Args:
        one: Tensors of a run of the first side, by name, in order.
        two: Of the second, of the same run.

    Returns:
        A pair for each tensor of the first side.
    """
    pairs = {name: KernelPair(name, name, 1.0) for name in one if name in two}
    left = dict.fromkeys(name for name in two if name not in pairs)
    for name in one:
        if name not in pairs:
            rest = ((_largest_error(two[other], one[name].astype(np.float64)), other) for other in left)
            apart, other = min(rest, default=(np.inf, ""))
            pairs[name] = KernelPair(name, None, 0.0)
            if apart < _MOST_OF_IT:
                pairs[name] = KernelPair(name, other, 1 - apart)
                del left[other]
    return [pairs[name] for name in one]

"""Which output of the candidate stands for which of the reference, and in which layout."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from conrepair.ground.metrics.tensors import compare_tensors
from conrepair.ground.runtime.words import are_numbered

Array = npt.NDArray[Any]
Order = tuple[int, ...]

_PROBE = 16  # samples, of together at most so many elements
_PROBED = 1 << 20
_NEAR = 0.1  # relative L2: values in their own order, and nearly never in another one
_MOST_AXES = 5  # of which all orders are looked at
_IMAGENET_CLASSES = {(1000,), (1001,)}  # the latter with a background class in front


@dataclass(frozen=True)
class OutputPair:
    """Two outputs that are compared.

    Attributes:
        reference: Name in the reference.
        candidate: Name in the candidate.
        permutation: Axes for numpy.transpose of the candidate, None when it fits as it is.
        background: The candidate has a background class in front (1001 classes against 1000); -1 when the
            reference has it; 0 when neither.
        exchanged: Whether that is no layout that the two formats have: the candidate's axes are in another order.
        flat: Whether only their sizes are the same, so that both are compared as rows of numbers.
    """

    reference: str
    candidate: str
    permutation: tuple[int, ...] | None = None
    background: int = 0
    exchanged: bool = False
    flat: bool = False

    @property
    def notes(self) -> list[str]:
        """What was done to make both comparable, in words."""
        result = []
        if self.permutation is not None:
            result.append(f"the converted model's output was transposed by {list(self.permutation)} to compare it")
        if self.background:
            side = "converted" if self.background > 0 else "original"
            result.append(f"the {side} model has a background class in front: compared without it")
        return result


def pair_outputs(
    reference: Mapping[str, Array],
    candidate: Mapping[str, Array],
    channels: tuple[str, str] = ("", ""),
    *,
    ordered: tuple[bool, bool] = (True, True),
) -> tuple[list[OutputPair], list[str]]:
    """Pair by name, then among the outputs whose shapes can be made equal by order, or by values without one.

    When both models have the same names, names alone decide: a name that stands for another tensor is a fault. Where
    outputs have other names and no order, they are what they hold: those whose values are nearly the same are paired.

    Args:
        reference: Arrays by name, samples first, in the model's order.
        candidate: The same for the other model.
        channels: Where each one's format has them (`Run.channels`).
        ordered: Whether each one's outputs have an order, and not names alone; numbers in names are one.

    Returns:
        The pairs in the reference's order, and what is left, in words.
    """
    pairs: dict[str, OutputPair] = {}
    free = list(candidate)
    by_order = (ordered[0] or are_numbered(reference)) and (ordered[1] or are_numbered(candidate))
    alike = set(reference) == set(candidate)
    for rule in ("name",) if alike else ("name", "order") if by_order else ("name", "values", "order"):
        for name in [name for name in reference if name not in pairs]:
            chosen = [other for other in free if rule != "name" or other == name]
            found = (_try(OutputPair(name, other), reference[name], candidate[other], channels) for other in chosen)
            fitting = (pair for pair in found if pair is not None)
            by_values = rule == "values"
            pair, error = _nearest(fitting, reference[name], candidate) if by_values else (next(fitting, None), 0.0)
            if pair is not None and error <= _NEAR:
                pairs[name] = pair
                free.remove(pair.candidate)
    unpaired = [
        f"the converted model has no output that fits {name} {list(array.shape[1:])} of the original"
        for name, array in reference.items()
        if name not in pairs
    ]
    unpaired += [f"the converted model has an extra output {name} {list(candidate[name].shape[1:])}" for name in free]
    return [pairs[name] for name in reference if name in pairs], unpaired


def _nearest(
    pairs: Iterable[OutputPair], reference: Array, candidate: Mapping[str, Array]
) -> tuple[OutputPair | None, float]:
    """The pair whose values are nearest in the first samples, with its relative L2."""
    rows = max(1, min(_PROBE, _PROBED // max(1, reference[:1].size)))
    errors: dict[OutputPair, float] = {}
    for pair in pairs:
        sides = fit(pair, reference[:rows], candidate[pair.candidate][:rows])
        errors[pair] = compare_tensors(*sides, rtol=0, atol=0).relative_l2
    best = min(errors, key=errors.__getitem__, default=None)
    return best, math.inf if best is None else errors[best]


def fit(pair: OutputPair, reference: Array, candidate: Array) -> tuple[Array, Array]:
    """Bring both arrays of a pair to one shape.

    Args:
        pair: From `pair_outputs`.
        reference: Samples first.
        candidate: Samples first.
    """
    if pair.permutation is not None:
        candidate = candidate.transpose(pair.permutation)
    if pair.flat:
        return reference.reshape(len(reference), -1), candidate.reshape(len(candidate), -1)
    reference, candidate = squeezed(reference), squeezed(candidate)
    if pair.background > 0:
        candidate = candidate[:, 1:]
    elif pair.background < 0:
        reference = reference[:, 1:]
    return reference, candidate


def _try(pair: OutputPair, reference: Array, candidate: Array, channels: tuple[str, str]) -> OutputPair | None:
    """The pair with the layout, or without the background class, that makes outputs comparable; or None."""
    if reference.ndim == candidate.ndim and reference.ndim > 2:
        found = _with_layout(pair, reference, candidate, channels)
        if found is not None:
            return found
    one, two = squeezed(reference).shape[1:], squeezed(candidate).shape[1:]
    if one == two:
        return pair
    if {one, two} == _IMAGENET_CLASSES:
        return replace(pair, background=two[0] - one[0])
    if len(reference) == len(candidate) and len(one) + len(two) > 2 and math.prod(one) == math.prod(two):
        return replace(pair, flat=True)
    return None


def _with_layout(
    pair: OutputPair, reference: Array, candidate: Array, channels: tuple[str, str]
) -> OutputPair | None:
    """The pair in a layout of the two formats, else in any order of axes that has the reference's values.

    Shapes can be ambiguous: the order that fits the data best is taken. Another one than the formats have must show
    that it's that one, by values that are nearly the same.
    """
    identity = tuple(range(reference.ndim))
    usual = _layouts(reference.ndim, channels)

    def nearest(orders: Iterable[Order], *, exchanged: bool) -> tuple[OutputPair | None, float]:
        pairs = (
            replace(pair, permutation=None if order == identity else order, exchanged=exchanged)
            for order in orders
            if tuple(candidate.shape[axis] for axis in order) == reference.shape
        )
        return _nearest(pairs, reference, {pair.candidate: candidate})

    found, error = nearest(usual, exchanged=False)
    if error > _NEAR and len(identity) <= _MOST_AXES:
        orders = ((0, *order) for order in itertools.permutations(identity[1:]))
        another, less = nearest((order for order in orders if order not in usual), exchanged=True)
        found = another if found is None or less <= _NEAR else found
    return found


def _layouts(rank: int, channels: tuple[str, str]) -> list[Order]:
    """The orders of the candidate's axes that both formats have; any move of the channels where one isn't known."""
    identity, to_last, to_first = tuple(range(rank)), (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
    ours, theirs = channels
    if ours and ours == theirs:
        return [identity]
    moves = {("first", "last"): {to_first}, ("last", "first"): {to_last}}
    return sorted({identity} | moves.get(channels, {to_first, to_last}))


def squeezed(array: Array) -> Array:
    """Without axes of length 1 behind the samples: [N, 1000, 1, 1] is [N, 1000].

    Args:
        array: Samples first.
    """
    shape = [size for size in array.shape[1:] if size != 1]
    return array.reshape(array.shape[0], *(shape or [1])) if array.ndim > 2 else array

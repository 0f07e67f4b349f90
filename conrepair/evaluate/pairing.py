"""Which output of the candidate stands for which of the reference, and in which layout."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.metrics.tensors import compare_tensors
from conrepair.runtime.words import are_numbered

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
            result.append(f"layout of the candidate transposed by {list(self.permutation)}")
        if self.background:
            side = "candidate" if self.background > 0 else "reference"
            result.append(f"the {side} has a background class in front; compared without it")
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
            found = (_try(name, reference[name], other, candidate[other], channels) for other in chosen)
            fitting = (pair for pair in found if pair is not None)
            pair = _nearest(fitting, reference, candidate) if rule == "values" else next(fitting, None)
            if pair is not None:
                pairs[name] = pair
                free.remove(pair.candidate)
    unpaired = [
        f"the candidate has no output that fits {name} {list(array.shape[1:])}"
        for name, array in reference.items()
        if name not in pairs
    ]
    unpaired += [f"the candidate's output {name} {list(candidate[name].shape[1:])} is extra" for name in free]
    return [pairs[name] for name in reference if name in pairs], unpaired


def _nearest(
    pairs: Iterable[OutputPair], reference: Mapping[str, Array], candidate: Mapping[str, Array]
) -> OutputPair | None:
    """The pair whose values are nearest, where they are nearly the same."""
    errors: dict[OutputPair, float] = {}
    for pair in pairs:
        one, two = reference[pair.reference], candidate[pair.candidate]
        rows = _probed(one)
        errors[pair] = compare_tensors(*fit(pair, one[:rows], two[:rows]), rtol=0, atol=0).relative_l2
    best = min(errors, key=errors.__getitem__, default=None)
    return best if best is not None and errors[best] <= _NEAR else None


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
    reference, candidate = _squeezed(reference), _squeezed(candidate)
    if pair.background > 0:
        candidate = candidate[:, 1:]
    elif pair.background < 0:
        reference = reference[:, 1:]
    return reference, candidate


def _try(name: str, reference: Array, other: str, candidate: Array, channels: tuple[str, str]) -> OutputPair | None:
    if reference.ndim == candidate.ndim and reference.ndim > 2:
        pair = _with_layout(name, reference, other, candidate, channels)
        if pair is not None:
            return pair
    one, two = _squeezed(reference).shape[1:], _squeezed(candidate).shape[1:]
    if one == two:
        return OutputPair(name, other)
    if {one, two} == _IMAGENET_CLASSES:
        return OutputPair(name, other, background=two[0] - one[0])
    if len(reference) == len(candidate) and len(one) + len(two) > 2 and math.prod(one) == math.prod(two):
        return OutputPair(name, other, flat=True)
    return None


def _with_layout(
    name: str, reference: Array, other: str, candidate: Array, channels: tuple[str, str]
) -> OutputPair | None:
    """The pair in a layout of the two formats, else in any order of axes that has the reference's values.

    Shapes can be ambiguous: the order that fits the data best is taken. Another one than the formats have must show
    that it's that one, by values that are nearly the same.
    """
    rank = reference.ndim
    identity = tuple(range(rank))
    usual = _layouts(rank, channels)
    found, error = _best(reference, candidate, usual)
    if (found is None or error > _NEAR) and rank <= _MOST_AXES:
        orders = ((0, *order) for order in itertools.permutations(range(1, rank)))
        another, less = _best(reference, candidate, [order for order in orders if order not in usual])
        if another is not None and (found is None or less <= _NEAR):
            return OutputPair(name, other, another, exchanged=True)
    return None if found is None else OutputPair(name, other, None if found == identity else found)


def _layouts(rank: int, channels: tuple[str, str]) -> list[Order]:
    """The orders of the candidate's axes that both formats have; any move of the channels where one isn't known."""
    identity, to_last, to_first = tuple(range(rank)), (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
    ours, theirs = channels
    if ours and ours == theirs:
        return [identity]
    moves = {("first", "last"): {to_first}, ("last", "first"): {to_last}}
    return sorted({identity} | moves.get(channels, {to_first, to_last}))


def _best(reference: Array, candidate: Array, orders: Sequence[Order]) -> tuple[Order | None, float]:
    """Of the orders of axes that fit the shape the one that fits the data best, with its relative L2."""
    fitting = [order for order in orders if tuple(candidate.shape[axis] for axis in order) == reference.shape]
    rows = _probed(reference)
    sample = np.asarray(reference[:rows])
    errors = [
        compare_tensors(sample, candidate[:rows].transpose(order), rtol=0, atol=0).relative_l2 for order in fitting
    ]
    place = int(np.argmin(errors)) if errors else None
    return (None, np.inf) if place is None else (fitting[place], errors[place])


def _probed(array: Array) -> int:
    """How many samples tell which outputs are the same."""
    return max(1, min(_PROBE, _PROBED // max(1, array[:1].size)))


def _squeezed(array: Array) -> Array:
    """Without axes of length 1 behind the samples: [N, 1000, 1, 1] is [N, 1000]."""
    shape = [size for size in array.shape[1:] if size != 1]
    return array.reshape(array.shape[0], *(shape or [1])) if array.ndim > 2 else array

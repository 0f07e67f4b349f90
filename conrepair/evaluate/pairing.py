"""Which output of the candidate stands for which of the reference, and in which layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.metrics.tensors import compare_tensors

__all__ = ["OutputPair", "Unpaired", "fit", "pair_outputs"]

Array = npt.NDArray[Any]

_PROBE = 16
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
    """

    reference: str
    candidate: str
    permutation: tuple[int, ...] | None = None
    background: int = 0

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


@dataclass(frozen=True)
class Unpaired:
    """Outputs that found no partner, with the reason."""

    reference: str | None
    candidate: str | None
    reason: str


def pair_outputs(
    reference: Mapping[str, Array], candidate: Mapping[str, Array]
) -> tuple[list[OutputPair], list[Unpaired]]:
    """Pair by name, then by order among the outputs whose shapes can be made equal.

    When both models have the same names, names alone decide: a name that stands for another tensor is a fault.

    Args:
        reference: Arrays by name, samples first, in the model's order.
        candidate: The same for the other model.

    Returns:
        The pairs in the reference's order, and what is left.
    """
    pairs: dict[str, OutputPair] = {}
    free = list(candidate)
    for by_name in (True, False) if set(reference) != set(candidate) else (True,):
        for name, array in reference.items():
            if name in pairs:
                continue
            for other in [other for other in free if not by_name or other == name]:
                pair = _try(name, array, other, candidate[other])
                if pair is not None:
                    pairs[name] = pair
                    free.remove(other)
                    break
    unpaired = [
        Unpaired(name, None, f"the candidate has no output that fits {name} {list(array.shape[1:])}")
        for name, array in reference.items()
        if name not in pairs
    ]
    unpaired += [
        Unpaired(None, name, f"the candidate's output {name} {list(candidate[name].shape[1:])} is extra")
        for name in free
    ]
    return [pairs[name] for name in reference if name in pairs], unpaired


def fit(pair: OutputPair, reference: Array, candidate: Array) -> tuple[Array, Array]:
    """Bring both arrays of a pair to one shape.

    Args:
        pair: From `pair_outputs`.
        reference: Samples first.
        candidate: Samples first.
    """
    if pair.permutation is not None:
        candidate = candidate.transpose(pair.permutation)
    reference, candidate = _squeezed(reference), _squeezed(candidate)
    if pair.background > 0:
        candidate = candidate[:, 1:]
    elif pair.background < 0:
        reference = reference[:, 1:]
    return reference, candidate


def _try(name: str, reference: Array, other: str, candidate: Array) -> OutputPair | None:
    if reference.ndim == candidate.ndim and reference.ndim > 2:
        permutation = _best_permutation(reference, candidate)
        if permutation is not None:
            identity = permutation == tuple(range(reference.ndim))
            return OutputPair(name, other, None if identity else permutation)
    one, two = _squeezed(reference).shape[1:], _squeezed(candidate).shape[1:]
    if one == two:
        return OutputPair(name, other)
    if {one, two} == _IMAGENET_CLASSES:
        return OutputPair(name, other, background=two[0] - one[0])
    return None


def _best_permutation(reference: Array, candidate: Array) -> tuple[int, ...] | None:
    """Among the layouts that fit the shape, the one that fits the data best: shapes can be ambiguous."""
    rank = reference.ndim
    identity: Sequence[int] = tuple(range(rank))
    options = {tuple(identity), (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))}
    fitting = [
        option for option in sorted(options) if tuple(candidate.shape[axis] for axis in option) == reference.shape
    ]
    if len(fitting) <= 1:
        return fitting[0] if fitting else None
    sample = np.asarray(reference[:_PROBE])
    errors = [
        compare_tensors(sample, candidate[:_PROBE].transpose(option), rtol=0, atol=0).relative_l2
        for option in fitting
    ]
    return fitting[int(np.argmin(errors))]


def _squeezed(array: Array) -> Array:
    """Without axes of length 1 behind the samples: [N, 1000, 1, 1] is [N, 1000]."""
    shape = [size for size in array.shape[1:] if size != 1]
    return array.reshape(array.shape[0], *(shape or [1])) if array.ndim > 2 else array

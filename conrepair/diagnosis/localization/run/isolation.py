"""Feed a target the source's activations at every cut, so that each piece shows only the error that it introduces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.run.pieces import Pieces
from conrepair.formats.networks.network import Network
from conrepair.ground.data.tensor_spec import numpy_dtype
from conrepair.ground.graph.layer_graph import Array, Tensor
from conrepair.ground.metrics.running_error import RunningError


class Isolation:
    """A target cut at all pairs."""

    def __init__(
        self, target: Network, pairs: Sequence[Pair], wanted: Sequence[str] | None = None, *, keep: bool = False
    ) -> None:
        """Cut.

        Args:
            target: The network.
            pairs: Where to cut, and what to feed there.
            wanted: Tensors of the target to compute; those of the pairs when None.
            keep: Hold all pieces, for more than one batch.
        """
        self._target, self._tensors = target, target.graph.tensors
        self._pairs = {pair.target: pair for pair in pairs}
        inputs = dict.fromkeys(target.graph.inputs)
        chosen = self._pairs if wanted is None else wanted
        self._pieces = Pieces.between(
            target, {**inputs, **self._pairs}, [name for name in chosen if name not in inputs], keep=keep
        )

    def run(self, source: Callable[[str], Array], feeds: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
        """Compute one batch.

        Args:
            source: Gives the source's tensors.
            feeds: The target's own inputs, for those that aren't paired.

        Yields:
            Each wanted tensor of the target, computed from the source's activations at the cuts before it.
        """
        yield from self._pieces.run(functools.partial(self.fed, source, feeds))

    def attempt(self, source: Callable[[str], Array], feeds: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
        """The same, where pairs are guesses: tensors that can't be computed from what they feed are left out."""
        yield from self._pieces.attempt(functools.partial(self.fed, source, feeds))

    def trial(self, tensor: str, fetch: Callable[[str], Array], uncut: Collection[str] = ()) -> Array | None:
        """A tensor, computed from other values at the cuts in front of it; None where it can't be.

        Args:
            tensor: Of the target.
            fetch: Gives what a cut is fed with.
            uncut: Pairs that are none of the cuts.
        """
        cuts = [name for name in dict.fromkeys([*self._target.graph.inputs, *self._pairs]) if name not in uncut]
        return dict(Pieces.between(self._target, cuts, [tensor]).attempt(fetch)).get(tensor)

    def fed(self, source: Callable[[str], Array], feeds: Mapping[str, Array], name: str) -> Array:
        """What a cut is fed with.

        Args:
            source: Gives the source's tensors.
            feeds: The target's own inputs, for those that aren't paired.
            name: Of the target's tensor.
        """
        pair = self._pairs.get(name)
        if pair is None:
            return feeds[name]
        return as_stored(pair.layout.to_target(source(pair.source)), self._tensors[name])


def add_result(error: RunningError, pair: Pair, expected: Array, result: Array) -> RunningError:
    """Add what a target gave to an error; one of another size is a mismatch everywhere.

    Args:
        error: That grows.
        pair: The tensors.
        expected: The source's.
        result: The target's, in its own layout.

    Returns:
        The error.
    """
    if result.size == expected.size:
        error.add(expected, pair.layout.to_source(result))
    else:
        error.mismatched += max(result.size, expected.size)
    return error


def as_stored(array: Array, tensor: Tensor) -> Array:
    """An array in the type that a network computes a tensor with; real numbers stay so for a quantized one."""
    if tensor.quantization is not None or not tensor.is_real:
        return np.asarray(array, order="C")
    return np.asarray(array, numpy_dtype(tensor.dtype), order="C")

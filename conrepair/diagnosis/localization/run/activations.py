"""What networks compute of one batch: the source as it is, a target cut so that each piece shows its own error."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.run.pieces import Pieces
from conrepair.diagnosis.localization.run.shelf import Shelf
from conrepair.formats.networks.network import Network
from conrepair.ground.data.tensor_spec import numpy_dtype
from conrepair.ground.graph.layer_graph import Array, Tensor
from conrepair.ground.metrics.running_error import RunningError


class Activations:
    """A network's tensors for one batch, each computed once.

    Attributes:
        network: That computes them.
        feeds: The batch, by the names of the graph's tensors.
    """

    def __init__(self, network: Network, feeds: Mapping[str, Array], folder: Path) -> None:
        """Begin without computed tensors.

        Args:
            network: To run.
            feeds: Of its inputs.
            folder: For large arrays; the caller removes it.
        """
        self.network = network
        self._shelf = Shelf(folder)
        self.renew(feeds)
        self._pieces: tuple[tuple[str, ...], Pieces] | None = None

    def __getitem__(self, name: str) -> Array:
        """A tensor that was computed, or fed."""
        return self._shelf[name]

    def compute(self, names: Sequence[str], *, keep: bool = False) -> None:
        """Compute tensors that aren't kept yet.

        Args:
            names: Tensors.
            keep: Hold what computes them, for the next batch.
        """
        missing = tuple(dict.fromkeys(name for name in names if name not in self._known))
        if not missing:
            return
        pieces = self._pieces[1] if self._pieces is not None and self._pieces[0] == missing else None
        pieces = pieces or Pieces.in_a_row(self.network, missing, keep=keep)
        self._pieces = (missing, pieces) if keep else None
        self._shelf.put_all(pieces.run(self._shelf.__getitem__))
        self._known.update(missing)

    def constants(self) -> dict[str, Array]:
        """What follows from sizes alone, as far as nodes read it that read more than that.

        What has one row for each sample of the batch is left out: it would hold for batches of this size only.
        """
        graph = self.network.graph
        read = {name for node in graph.nodes if not graph.unfed.issuperset(node.outputs) for name in node.inputs}
        wanted = sorted(name for name in graph.unfed & read if graph.tensors[name].observable)
        self.compute(wanted)
        batches = {array.shape[0] for array in self.feeds.values() if array.ndim} - {1}
        return {name: np.array(self[name]) for name in wanted if batches.isdisjoint(self[name].shape[:1])}

    def renew(self, feeds: Mapping[str, Array]) -> None:
        """Take another batch of the same sizes in place of this one."""
        self.feeds = feeds
        self._shelf.put_all(feeds.items())
        self._known = set(feeds)

    def move(self, folder: Path) -> None:
        """Keep large arrays in another folder from now on.

        Args:
            folder: The caller removes it.
        """
        self._shelf.move(folder)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each tensor that's there."""
        return self._shelf.shapes()


class Isolation:
    """A target cut at all pairs."""

    def __init__(
        self, target: Network, pairs: Sequence[Pair], wanted: Sequence[str] | None = None, *, keep: bool = False
    ) -> None:
        """Cut the network at boundaries.

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
        """The values that a boundary is fed with.

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

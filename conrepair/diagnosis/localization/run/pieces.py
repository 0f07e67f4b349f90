"""Run a network in pieces, so that only a few activations are in memory at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from conrepair.formats.networks.network import Network
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.errors import InferenceError
from conrepair.ground.runtime.processes.memory import return_freed
from conrepair.ground.runtime.shown.heartbeat import far

_MUCH = 512 << 20  # bytes that the activations of a network have together
_WEIGHTS = 512 << 20  # bytes of weights that a piece reads, where it can be less than all
_LEAST = 32 << 20  # bytes; smaller pieces would save no memory worth the name

_Item = TypeVar("_Item")
Fetch = Callable[[str], Array]


class Pieces:
    """The segments between some cuts of a network, a few cuts at a time.

    A piece computes tensors of at most the size of the network's largest (or 32 MiB) and reads about as much, so both
    are bounded by the two largest, whatever the activations of the whole network add up to.
    """

    def __init__(self, network: Network, segments: Sequence[_Segment]) -> None:
        """Use `between` or `in_a_row` instead."""
        self._segments = segments
        # Giving memory back after each piece takes a fifth of the time; a network that can't leave much needn't.
        self._gives_back = sum(tensor.nbytes or 0 for tensor in network.graph.tensors.values()) > _MUCH

    @classmethod
    def between(cls, network: Network, fed: Collection[str], wanted: Sequence[str], *, keep: bool = False) -> Pieces:
        """What lies between cuts: each wanted tensor is computed from the nearest tensors that are fed.

        Args:
            network: To cut.
            fed: Tensors whose values will be given, the network's inputs among them.
            wanted: Tensors to compute.
            keep: Hold all segments, for more than one batch; otherwise one is made when it's run, and dropped. So are
                those of a network with many weights in any case: they'd stay in memory, beside another network's.
        """
        fed, keep = tuple(fed), keep and _is_held(network)
        return cls(network, [_Segment(network, fed, group, keep) for group in _groups(network, wanted)])

    @classmethod
    def in_a_row(cls, network: Network, wanted: Sequence[str], *, keep: bool = False) -> Pieces:
        """The network as it is, each piece fed by what the pieces before it have computed.

        Args:
            network: To run.
            wanted: Tensors to compute; the more, the less is computed twice. Inputs, which nothing computes, are
                left out.
            keep: As for `between`.
        """
        known, keep = tuple(dict.fromkeys(network.graph.inputs)), keep and _is_held(network)
        segments = []
        for group in _groups(network, [name for name in wanted if name not in network.graph.inputs]):
            segments.append(_Segment(network, known, group, keep))
            known += group
        return cls(network, segments)

    def run(self, fetch: Fetch) -> Iterator[tuple[str, Array]]:
        """Compute one batch.

        Args:
            fetch: Gives the value of a tensor that is fed; called when a piece that reads it runs, so what an
                earlier piece has computed may be among it.

        Yields:
            Each wanted tensor and its value, in the network's order.
        """
        for segment in self._each():
            results = segment.run(fetch)
            for name in segment.wanted:
                yield name, results.pop(name)
            if self._gives_back:
                return_freed()

    def values(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The tensors that neighbouring segments are fed, and those that they compute.

        Args:
            feeds: The network's inputs, by tensor.
        """
        found = dict(feeds)
        found.update(self.run(found.__getitem__))
        return found

    def attempt(self, fetch: Fetch) -> Iterator[tuple[str, Array]]:
        """Compute what can be computed of one batch.

        Values that a guess gives may be none that the network can be fed (a token's number has no row in the table
        of the segments), and another arithmetic may have no kernel for an operator.

        Args:
            fetch: As for `run`.

        Yields:
            What can be computed of the wanted tensors.
        """
        for segment in self._each():
            yield from segment.attempt(fetch)

    def _each(self) -> Iterator[_Segment]:
        """The segments, of which is said how many layers are left."""
        total, done = sum(len(segment.wanted) for segment in self._segments), 0
        for segment in self._segments:
            if total > 1:
                far(f"{done} of {total} layers")
            yield segment
            done += len(segment.wanted)


class _Segment:
    """A segment that's made when it's needed."""

    def __init__(self, network: Network, fed: tuple[str, ...], wanted: tuple[str, ...], keep: bool) -> None:
        self.wanted = wanted
        self._network, self._fed = network, fed
        opened = functools.partial(network.segment, fed, wanted)
        self._opened = functools.cache(opened) if keep else opened

    def run(self, fetch: Fetch) -> dict[str, Array]:
        segment = self._opened()
        return segment.run({name: fetch(name) for name in segment.needs})

    def attempt(self, fetch: Fetch) -> Iterator[tuple[str, Array]]:
        """The tensors that can be computed, found by halving until only failing ones are left."""
        try:
            yield from self.run(fetch).items()
        except InferenceError:
            middle = len(self.wanted) // 2
            for wanted in (self.wanted[:middle], self.wanted[middle:]) if middle else ():
                yield from _Segment(self._network, self._fed, wanted, False).attempt(fetch)


def _groups(network: Network, wanted: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Neighbours in the graph's order, as many as the limits allow; tensors of unknown size count as the largest."""
    tensors = network.graph.tensors
    largest = max((tensor.nbytes or 0 for tensor in tensors.values()), default=0)
    sizes = {name: tensors[name].nbytes for name in sorted(wanted, key=network.graph.order.__getitem__)}
    held = network.graph.weights_up_to
    before = 0
    named = [(name, largest if size is None else size) for name, size in sizes.items()]
    for group in packed(named, max(largest, _LEAST)):
        read = []
        for name in group:
            read.append((name, held.get(name, 0) - before))
            before = held.get(name, 0)
        yield from packed(read, _WEIGHTS)


def _is_held(network: Network) -> bool:
    """Whether a network has so few weights that its segments may be held."""
    return max(network.graph.weights_up_to.values(), default=0) <= _WEIGHTS


def packed(items: Iterable[tuple[_Item, int]], limit: int) -> Iterator[tuple[_Item, ...]]:
    """Groups of neighbouring segments, each as large as a limit allows, or a single segment.

    Args:
        items: With their sizes.
        limit: Of all sizes of a group.
    """
    group: list[_Item] = []
    total = 0
    for item, size in items:
        if group and total + size > limit:
            yield tuple(group)
            group, total = [], 0
        group.append(item)
        total += size
    if group:
        yield tuple(group)

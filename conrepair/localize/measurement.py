"""Measure, for every pair of tensors, the error that the target introduces there, the one it has, and the floor."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from conrepair.graph.layer_graph import Array
from conrepair.localize.activations import Activations
from conrepair.localize.isolation import Isolation, add_result, as_stored
from conrepair.localize.matching import Pair
from conrepair.localize.pieces import Fetch, Pieces
from conrepair.localize.shelf import Shelf
from conrepair.metrics.running_error import RunningError, relative_l2
from conrepair.networks.network import Network
from conrepair.runtime.errors import InferenceError

__all__ = ["DISTURBANCE", "Cut", "Feeds", "measure"]

Feeds = tuple[Mapping[str, Array], Mapping[str, Array]]
"""One batch: the source's and the target's inputs, by the names of their graphs' tensors."""

DISTURBANCE = 2.0**-20
"""Relative change by which conditioning is measured: eight units in the last place of float32."""

_SEED = 20261120
_CHUNK = 1 << 18  # elements at a time: what's computed on the way takes no memory worth the name


@dataclass
class Cut:
    """What was measured at a pair.

    Attributes:
        pair: The tensors.
        introduced: Target against source where the target is fed the source's activations at the cuts before.
        full: Target against source where both ran from their inputs on.
        disturbed: Relative L2 by which the source's result changes when what's read changes by eight units in the
            last place: what rounding makes of rounding here.
        other: Relative L2 between the source's result and that of another arithmetic (None when it has none).
    """

    pair: Pair
    introduced: RunningError = field(default_factory=RunningError)
    full: RunningError = field(default_factory=RunningError)
    disturbed: float = 0.0
    other: float | None = None


def measure(
    pairs: Sequence[Pair],
    first: tuple[Activations, Activations],
    rest: Iterable[Feeds],
    folder: Path,
    *,
    outputs: Sequence[Pair] = (),
    whole_runs: int = 2,
    second_opinion: Callable[[], Network | None] = lambda: None,
) -> list[Cut]:
    """Measure all pairs over all batches; floors on the first batch.

    Args:
        pairs: From the alignment; fed and measured.
        first: A batch through the network that is right, and through the one in question.
        rest: Any number of further batches; each is dropped when it's done.
        folder: For activations.
        outputs: Pairs that are measured and not fed: what the target gives where the source gives something else.
        whole_runs: How many batches the target runs as a whole, too; what it introduces is measured on all.
        second_opinion: Opens the source in another arithmetic; called once, and not kept.

    Returns:
        In the target's order, but for those that are an input of the target: nothing computes them.
    """
    source, target = (side.network for side in first)
    inputs = set(target.graph.inputs)
    cuts: dict[str, list[Cut]] = {}
    for pair in [*pairs, *outputs]:
        if pair.target not in inputs:
            cuts.setdefault(pair.target, []).append(Cut(pair))
    isolated = Isolation(target, pairs, list(cuts), keep=True)

    def add_introduced(expected: Fetch, feeds: Mapping[str, Array]) -> None:
        for name, array in isolated.run(expected, feeds):
            for cut in cuts[name]:
                add_result(cut.introduced, cut.pair, expected(cut.pair.source), array)
            del array  # so that nothing holds it while the next piece runs; below too

    wanted = [pair.source for pair in [*pairs, *outputs]]
    right, given = first
    right.compute(wanted)
    given.compute(list(cuts))
    add_introduced(right.__getitem__, given.feeds)
    for name in cuts:
        for cut in cuts[name]:
            add_result(cut.full, cut.pair, right[cut.pair.source], given[name])
    fed = list(dict.fromkeys([*source.graph.inputs, *(pair.source for pair in pairs)]))
    _measure_floors(right, second_opinion, itertools.chain.from_iterable(cuts.values()), fed)
    captured = Pieces.in_a_row(source, wanted, keep=True)
    whole = Pieces.in_a_row(target, list(cuts), keep=True)
    shelf, seen = Shelf(folder / "measured"), Shelf(folder / "whole")
    for number, (ours, theirs) in enumerate(rest, 1):
        shelf.put_all(ours.items())
        shelf.put_all(captured.run(shelf.__getitem__))
        add_introduced(shelf.__getitem__, theirs)
        if number < whole_runs:
            kept = whole.read_again
            seen.put_all(theirs.items())
            for name, array in whole.run(seen.__getitem__):
                for cut in cuts[name]:
                    add_result(cut.full, cut.pair, shelf[cut.pair.source], array)
                if name in kept:
                    seen.put(name, array)
                del array
    return [cut for name in sorted(cuts, key=target.graph.order.__getitem__) for cut in cuts[name]]


def _measure_floors(
    right: Activations, second_opinion: Callable[[], Network | None], cuts: Iterable[Cut], fed: Sequence[str]
) -> None:
    """Of the source: a target's own rounding may be what's wrong with it."""
    source = right.network
    by_source: dict[str, list[Cut]] = {}
    for cut in cuts:
        by_source.setdefault(cut.pair.source, []).append(cut)
    wanted = [name for name in by_source if name not in source.graph.inputs]
    disturbed = _Disturbed(right.__getitem__)
    for name, array in Pieces.between(source, fed, wanted).run(disturbed.__getitem__):
        disturbance = relative_l2(right[name], array)
        for cut in by_source[name]:
            cut.disturbed = disturbance
        del array
    other = second_opinion()
    if other is not None:
        stored = functools.partial(_stored, right, other)
        for name, array in _opinions(other, fed, wanted, stored):
            difference = relative_l2(right[name], array)
            for cut in by_source[name]:
                cut.other = difference
            del array


def _opinions(
    other: Network, fed: Sequence[str], wanted: Sequence[str], fetch: Callable[[str], Array]
) -> Iterator[tuple[str, Array]]:
    """What another arithmetic gives, but for tensors that it has no kernels for."""
    seen = set()
    try:
        for name, array in Pieces.between(other, fed, wanted).run(fetch):
            seen.add(name)
            yield name, array
            del array
    except InferenceError:
        for name in wanted:
            if name not in seen:
                with contextlib.suppress(InferenceError):
                    yield from Pieces.between(other, fed, [name]).run(fetch)


def _stored(right: Activations, network: Network, name: str) -> Array:
    return as_stored(right[name], network.graph.tensors[name])


class _Disturbed:
    """Activations, each number changed in its last places up or down, the same way every time."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def __getitem__(self, name: str) -> Array:
        return self.shake(self._fetch(name))

    def shake(self, array: Array) -> Array:
        if array.dtype.kind != "f":
            return array
        generator, one = np.random.default_rng(_SEED), array.dtype.type(1)
        result = np.array(array, order="C")
        flat = result.reshape(-1)
        for start in range(0, flat.size, _CHUNK):
            part = flat[start : start + _CHUNK]
            signs = 2 * generator.integers(0, 2, part.shape, dtype=np.int8) - 1
            part *= one + signs * array.dtype.type(DISTURBANCE)
        return result

"""Pieces of the target, fed the source's activations, on one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from conrepair.graph.layer_graph import Array
from conrepair.localize.activations import Activations
from conrepair.localize.isolation import Isolation, add_result
from conrepair.localize.matching import Pair
from conrepair.localize.shelf import Shelf
from conrepair.metrics.running_error import RunningError

__all__ = ["Isolated"]


class Isolated:
    """Runs of the target with the source's activations, on one batch."""

    def __init__(self, source: Activations, target: Activations, folder: Path) -> None:
        self._source, self._target, self._feeds = source, target.network, target.feeds
        self._shelf = Shelf(folder / "isolated")
        self._shelf.put_all(target.feeds.items())

    def run(self, pairs: Sequence[Pair], names: Sequence[str]) -> Callable[[str], Array]:
        """Tensors, computed from the nearest pairs."""
        isolation = Isolation(self._target, pairs, names)
        self._shelf.put_all(isolation.run(self._source.__getitem__, self._feeds))
        return self._shelf.__getitem__

    def errors(self, pairs: Sequence[Pair], wanted: Sequence[Pair]) -> dict[str, float]:
        """Introduced errors of some pairs, by their targets' names."""
        inputs = set(self._target.graph.inputs)
        chosen = {pair.target: pair for pair in wanted if pair.target not in inputs}
        found = {}
        for name, array in Isolation(self._target, pairs, list(chosen)).run(self._source.__getitem__, self._feeds):
            error, pair = RunningError(), chosen[name]
            add_result(error, pair, self._source[pair.source], array)
            found[name] = error.error
        return found

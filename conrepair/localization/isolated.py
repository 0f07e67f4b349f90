"""Pieces of the target, fed the source's activations, on one batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from conrepair.graph.layer_graph import Array
from conrepair.localization.activations import Activations
from conrepair.localization.isolation import Isolation, add_result
from conrepair.localization.matching import Pair
from conrepair.localization.shelf import Shelf
from conrepair.metrics.running_error import RunningError


class Isolated:
    """Runs of the target with the source's activations, on one batch, to try guesses: what can't be run is wrong."""

    def __init__(self, source: Activations, target: Activations, folder: Path) -> None:
        self._source, self._target, self._feeds = source, target.network, target.feeds
        self._shapes = target.shapes()
        self._shelf = Shelf(folder / "isolated")
        self._shelf.put_all(target.feeds.items())

    def run(self, pairs: Sequence[Pair], names: Sequence[str]) -> Callable[[str], Array]:
        """Tensors, computed from the nearest pairs; no number where they can't be."""
        left = dict.fromkeys(names)
        for name, array in Isolation(self._target, pairs, names).attempt(self._source.__getitem__, self._feeds):
            self._shelf.put(name, array)
            left.pop(name, None)
            del array  # so that nothing holds it while the next piece runs
        inputs = self._target.graph.inputs
        self._shelf.put_all((name, np.full(self._shapes[name], np.nan)) for name in left if name not in inputs)
        return self._shelf.__getitem__

    def errors(self, pairs: Sequence[Pair], wanted: Sequence[Pair]) -> dict[str, float]:
        """Introduced errors of some pairs, by their targets' names; infinite where nothing can be computed."""
        inputs = set(self._target.graph.inputs)
        chosen = {pair.target: pair for pair in wanted if pair.target not in inputs}
        found = dict.fromkeys(chosen, math.inf)
        isolation = Isolation(self._target, pairs, list(chosen))
        for name, array in isolation.attempt(self._source.__getitem__, self._feeds):
            pair = chosen[name]
            found[name] = add_result(RunningError(), pair, self._source[pair.source], array).error
        return found

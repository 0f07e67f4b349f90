"""What a network computes of one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from conrepair.diagnosis.localization.run.pieces import Pieces
from conrepair.diagnosis.localization.run.shelf import Shelf
from conrepair.formats.networks.network import Network
from conrepair.ground.graph.layer_graph import Array


class Activations:
    """A network's tensors for one batch, each computed once.

    Attributes:
        network: That computes them.
        feeds: The batch, by the names of the graph's tensors.
    """

    def __init__(self, network: Network, feeds: Mapping[str, Array], folder: Path) -> None:
        """Nothing is computed yet.

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
        """Compute what isn't there yet.

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

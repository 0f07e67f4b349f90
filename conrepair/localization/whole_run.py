"""Run an opened network from its inputs to its outputs."""

from __future__ import annotations

from collections.abc import Mapping

from conrepair.graph.layer_graph import Array
from conrepair.localization.opening import OpenedNetwork
from conrepair.localization.pieces import Pieces

__all__ = ["WholeRun"]


class WholeRun:
    """A network with its inputs and outputs by the names that the model has for them."""

    def __init__(self, opened: OpenedNetwork) -> None:
        """Prepare the run.

        Args:
            opened: The network.
        """
        self._opened = opened
        network = opened.network
        self._pieces = Pieces.in_a_row(network, list(network.output_names.values()), keep=True)

    def __call__(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run one batch, of the size that the network was opened with.

        Args:
            feeds: By the model's names.

        Returns:
            Its outputs, by the model's names.
        """
        values = {self._opened.input_tensors[name]: array for name, array in feeds.items()}
        values.update(self._pieces.run(values.__getitem__))
        return {name: values[tensor] for name, tensor in self._opened.network.output_names.items()}

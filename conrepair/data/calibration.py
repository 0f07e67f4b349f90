"""Feeds to calibrate a quantization with: samples of a dataset, as the model takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from conrepair.data.feeds import Feeds, FeedSource, batches
from conrepair.data.tensor_spec import TensorSpec

__all__ = ["CalibrationFeeds"]


class CalibrationFeeds:
    """Complete feeds by input name, in batches of one, or of the size that the model is fixed to.

    The samples are spread evenly over the dataset, as a folder of classes has one class after the other.

    Args:
        source: From `open_feeds`.
        inputs: The model's inputs.
        samples: How many; all, if the dataset has fewer.
    """

    def __init__(self, source: FeedSource, inputs: Sequence[TensorSpec], samples: int) -> None:
        self._source = source
        self._inputs = tuple(inputs)
        count = min(samples, source.count)
        self._indices = [index * source.count // count for index in range(count)]
        self.count = count
        self.axes, self.matching = source.axes, source.matching

    def __iter__(self) -> Iterator[Feeds]:
        """Read the samples; may be done more than once."""
        for batch in batches(self, self._inputs, 1):
            yield batch.feeds

    def read(self, start: int, stop: int) -> Feeds:
        """See `FeedSource`."""
        rows = [self._source.read(index, index + 1) for index in self._indices[start:stop]]
        return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}

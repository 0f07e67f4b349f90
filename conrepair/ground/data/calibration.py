"""Feeds to calibrate a quantization with: samples of a dataset, as the model takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conrepair.ground.data.feeds import Chosen, Feeds, FeedSource, batches
from conrepair.ground.data.tensor_spec import TensorSpec


class CalibrationFeeds(Chosen):
    """Complete feeds by input name, in batches of one, or of the size that the model is fixed to.

    The samples are spread evenly over the dataset, as a folder of classes has one class after the other.

    Args:
        source: From `open_feeds`.
        inputs: The model's inputs.
        samples: How many; all, if the dataset has fewer.
    """

    def __init__(self, source: FeedSource, inputs: Sequence[TensorSpec], samples: int) -> None:
        count = min(samples, source.count)
        super().__init__(source, [index * source.count // count for index in range(count)])
        self._inputs = tuple(inputs)

    def __iter__(self) -> Iterator[Feeds]:
        """Read the samples; may be done more than once."""
        for batch in batches(self, self._inputs, 1):
            yield batch.feeds

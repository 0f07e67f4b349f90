"""Samples of several steps: what a model with a state is fed in a row, from a fresh start."""

from __future__ import annotations

import numpy as np

from conrepair.ground.data.feeds import Feeds, FeedSource
from conrepair.ground.runtime.errors import DataError


class Sequences:
    """A dataset whose samples, as many in a row as there are steps, are one sample: the last axis has the steps."""

    def __init__(self, reader: FeedSource, steps: int, *, drawn: bool) -> None:
        """Prepare the sequences.

        Args:
            reader: The dataset.
            steps: In a row.
            drawn: Whether samples are drawn, of which there are as many as are read.

        Raises:
            DataError: if there are too few for one.
        """
        self._reader, self._steps = reader, steps
        self.count = reader.count if drawn else reader.count // steps
        self.axes, self.matching = reader.axes, reader.matching
        if not self.count:
            raise DataError(
                f"the data has {reader.count} samples, and {steps} steps make one of a model with a state. Give "
                "more, or fewer steps (--steps)."
            )

    def read(self, start: int, stop: int) -> Feeds:
        """Feeds for samples [start, stop), sample axis first, steps last."""
        rows = self._reader.read(start * self._steps, stop * self._steps)
        each = {name: array.reshape(-1, self._steps, *array.shape[1:]) for name, array in rows.items()}
        return {name: np.moveaxis(array, 1, -1) for name, array in each.items()}


def step_of(feeds: Feeds, step: int) -> Feeds:
    """What a batch of sequences has at one step.

    Args:
        feeds: Of the batch.
        step: Which, from 0.
    """
    return {name: np.ascontiguousarray(array[..., step]) for name, array in feeds.items()}

"""A model that is fed several steps in a row, and keeps its state between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from conrepair.formats.models.runnable import Array, Runnable
from conrepair.ground.data.sample_axes import OutputAxes
from conrepair.ground.data.sequences import step_of


class Stepwise(Runnable):
    """Runs a batch of sequences (`conrepair.ground.data.sequences`), each from a fresh start.

    Outputs have their samples in front, and the steps behind these.

    Attributes:
        runnable: The model.
    """

    def __init__(self, runnable: Runnable, steps: int, outputs: OutputAxes, inputs: Mapping[str, int]) -> None:
        """Wrap.

        Args:
            runnable: The model.
            steps: In a row.
            outputs: Where its outputs have their samples.
            inputs: The axis of samples of each input; none where each sample is a complete set of feeds.
        """
        self.runnable, self._steps, self._axes, self._fed = runnable, steps, outputs, inputs
        self.inputs, self.ordered, self.states = runnable.inputs, runnable.ordered, runnable.states
        place = 1 if inputs else 0
        self.outputs = tuple(
            replace(spec, shape=(*spec.shape[:place], steps, *spec.shape[place:])) for spec in runnable.outputs
        )

    def run(self, feeds: Mapping[str, Array], *, fresh: bool = True) -> dict[str, Array]:
        """Compute one batch of sequences.

        Args:
            feeds: By input, the steps along the last axis.
            fresh: Whether the first step begins anew.
        """
        size = next((feeds[name].shape[axis] for name, axis in self._fed.items()), 1)
        self.device_seconds = None
        given = [
            self._step(step_of(dict(feeds), step), size, fresh=fresh and not step) for step in range(self._steps)
        ]
        return {name: np.stack([outputs[name] for outputs in given], axis=1 if self._fed else 0) for name in given[0]}

    def _step(self, feeds: Mapping[str, Array], size: int, *, fresh: bool) -> dict[str, Array]:
        outputs = self.runnable.run(feeds, fresh=fresh)
        if self.runnable.device_seconds is not None:
            self.device_seconds = (self.device_seconds or 0.0) + self.runnable.device_seconds
        return {name: self._axes.in_front(name, array, size) for name, array in outputs.items()}

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        return self.run(feeds)

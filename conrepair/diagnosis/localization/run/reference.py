"""The network that's right: what it computes of each batch, and what rounding makes of that."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from conrepair.diagnosis.localization.run.activations import Activations, as_stored
from conrepair.diagnosis.localization.run.pieces import Pieces
from conrepair.formats.networks.network import Network
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.metrics.running_error import RunningError, error_of
from conrepair.ground.runtime.errors import InferenceError
from conrepair.verdicts.judging.arithmetic import shaken
from conrepair.verdicts.judging.measured import Measured, measured


@dataclass(frozen=True)
class RoundingFloor:
    """What rounding explains of a tensor, computed from the nearest tensors that are fed.

    Attributes:
        disturbed: Relative L2 by which it changes when what's read changes by eight units in the last place: what
            rounding makes of rounding here.
        other: Relative L2 between it and that of another arithmetic (None when there's none).
        carried: `disturbed` of all elements alike, whatever their norm hides: what errors of another size are
            multiplied by, too.
    """

    disturbed: float = 0.0
    other: float | None = None
    carried: float = 0.0


class Reference:
    """A network with which targets are compared.

    Attributes:
        network: It.
    """

    def __init__(
        self,
        network: Network,
        folder: Path,
        *,
        second_opinion: Callable[[], Network | None] = lambda: None,
        keep: bool = False,
    ) -> None:
        """Begin without computed tensors.

        Args:
            network: That is right.
            folder: For activations; the caller removes it.
            second_opinion: Opens it in another arithmetic; called when floors are measured, and not kept.
            keep: Hold the activations of all batches, for several targets; otherwise the first one's and the last's.
        """
        self.network = network
        self._folder, self._second_opinion, self._keep = folder, second_opinion, keep
        self._batches: dict[int, Activations] = {}
        self._floors: dict[frozenset[str], dict[str, RoundingFloor]] = {}
        self._measurements: dict[tuple[int, tuple[str, ...]], Measured] = {}

    def batch(self, number: int, feeds: Mapping[str, Array]) -> Activations:
        """What it computes of a batch.

        Args:
            number: Of the batch; asked for in order, or, where all are kept, in any.
            feeds: The same ones each time.
        """
        place = number if self._keep else min(number, 1)
        found = self._batches.get(place)
        if found is None:
            found = self._batches[place] = Activations(self.network, feeds, self._folder / f"batch-{place}")
        elif place and not self._keep:
            found.renew(feeds)
        return found

    def hold(self, folder: Path, batches: Iterable[Mapping[str, Array]]) -> None:
        """Hold all batches from now on, for several targets.

        Args:
            folder: For activations in place of the first one, which may be gone.
            batches: All of them.
        """
        self._keep, self._folder = True, folder
        self._batches = {0: self._batches[0]}
        self._batches[0].move(folder / "batch-0")
        for number, feeds in enumerate(batches):
            self.batch(number, feeds)

    def range_of(self, tensor: str, *, of_others: bool = False) -> tuple[float, float]:
        """The smallest and the largest value of a tensor, over all batches that are held.

        Args:
            tensor: Of the source; texts have no range: it's NaN.
            of_others: Whether as far as other samples' values are likely to lie: as far beyond the ends as these lie
                beyond those of most samples. No further where samples share an end: it's a limit, as 255 of pixels.
        """
        rows = []
        known = list(self.first.shapes())  # of other batches all of that is computed at once, as it'll be used
        for batch in self._batches.values():
            batch.compute([*known, tensor])
            array = batch[tensor]
            if array.dtype.kind not in "biufV":
                return np.nan, np.nan
            rows += list(array) if array.ndim > 1 else [array]
        lows, highs = (np.array([float(end(row)) for row in rows]) for end in (np.min, np.max))
        low, high = float(lows.min()), float(highs.max())
        if not of_others:
            return low, high
        return _of_others(low, lows), _of_others(high, highs)

    @property
    def first(self) -> Activations:
        """What it computes of the first batch, once that was asked for."""
        return self._batches[0]

    @functools.cached_property
    def second_outputs(self) -> Mapping[str, Array] | None:
        """The outputs for the first batch in another arithmetic, by the model's names; None where there's none."""
        other = self._second_opinion()
        with contextlib.suppress(InferenceError):  # it has no kernels for some operator
            if other is not None:
                given = {name: _stored(self.first, other, name) for name in other.graph.inputs}
                values = Pieces.in_a_row(other, list(other.output_names.values())).values(given)
                return {name: values[tensor] for name, tensor in other.output_names.items()}
        return None

    def measured(self, batches: Sequence[Mapping[str, Array]], arithmetics: Collection[str]) -> Measured:
        """What the outputs are by other means; measured once.

        Args:
            batches: Inputs of all batches that are compared; the same ones each time.
            arithmetics: Names of those to simulate.
        """
        known = len(batches), tuple(arithmetics)
        if known not in self._measurements:
            self._measurements[known] = measured(self.network, batches, arithmetics)
        return self._measurements[known]

    def floors(self, fed: Iterable[str], wanted: Iterable[str]) -> Mapping[str, RoundingFloor]:
        """Measure floors, once; of the source, as a target's own rounding may be what's wrong with it.

        All tensors that are named must have been computed of the first batch.

        Args:
            fed: Tensors that are given, besides its inputs.
            wanted: Tensors that are computed from the nearest of those.
        """
        right, inputs = self.first, self.network.graph.inputs
        fed = tuple(dict.fromkeys([*inputs, *fed]))
        known = self._floors.setdefault(frozenset(fed), {})
        missing = [name for name in wanted if name not in known and name not in inputs]
        if not missing:
            return known
        found: dict[str, RoundingFloor] = {}
        for name, array in Pieces.between(self.network, fed, missing).run(lambda item: shaken(right[item])):
            found[name] = RoundingFloor(1.0, carried=1.0)  # where rounding decides how many, it decides everything
            if array.shape == right[name].shape:
                error = RunningError().add(right[name], array)
                found[name] = RoundingFloor(error.error, carried=error.relative_l2)
            del array  # so that nothing holds it while the next piece runs
        other = self._second_opinion()
        if other is not None:
            for name, array in Pieces.between(other, fed, missing).attempt(functools.partial(_stored, right, other)):
                other_error = error_of(right[name], array.reshape(right[name].shape))  # () and (1,) are one
                found[name] = replace(found[name], other=other_error)
                del array
        known.update(found)
        return known


def _stored(right: Activations, network: Network, name: str) -> Array:
    return as_stored(right[name], network.graph.tensors[name])


def _of_others(end: float, ends: Array) -> float:
    """How far other samples' values are likely to go, by the smallest or the largest value of each that is known."""
    return end if (ends == end).sum() > 1 else 2 * end - float(np.median(ends))

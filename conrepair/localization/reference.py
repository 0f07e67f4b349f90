"""The network that's right: what it computes of each batch, and what rounding makes of that."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np

from conrepair.graph.layer_graph import Array
from conrepair.judging import numbers
from conrepair.judging.arithmetic import arithmetic_of
from conrepair.judging.disturbance import DISTURBED, as_rounding, shaken
from conrepair.judging.exact import exact_values, first_wrong_kernel
from conrepair.judging.simulation import Simulated
from conrepair.localization.activations import Activations
from conrepair.localization.isolation import as_stored
from conrepair.localization.pieces import Pieces
from conrepair.metrics.running_error import RunningError, error_of
from conrepair.networks.network import Network
from conrepair.runtime.errors import InferenceError
from conrepair.truth.judging import beside


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

    disturbed: float
    other: float | None
    carried: float


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
        """Compute nothing yet.

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
        self._second_outputs: dict[str, Array] | None = None
        self._rounded_outputs: dict[str, Array] | None = None
        self._asked = False

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
                beyond those of most samples. Nothing beyond, where all samples end at the same.
        """
        rows = []
        known = list(
            self._batches[0].shapes()
        )  # of other batches all of that is computed at once, as it will be used
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
        return 2 * low - float(np.median(lows)), 2 * high - float(np.median(highs))

    def second_outputs(self, right: Activations) -> Mapping[str, Array] | None:
        """The outputs for the first batch in another arithmetic, by the model's names; None where there's none.

        Args:
            right: The first batch.
        """
        if not self._asked:
            self._asked = True
            other = self._second_opinion()
            if other is not None:
                with contextlib.suppress(InferenceError):  # it has no kernels for some operator
                    self._second_outputs = _outputs(other, right)
        return self._second_outputs

    def rounded_outputs(self, right: Activations) -> Mapping[str, Array]:
        """The outputs for the first batch if each tensor on the way were rounded a little more, by the model's names.

        Other kernels of one library are often nearly the same: they don't show how badly conditioned a network is.
        Here its tensors are disturbed, some after the other, and what that does is carried to the outputs.

        Args:
            right: The first batch.
        """
        if self._rounded_outputs is None:
            found = Simulated(self.network, DISTURBED, most=numbers.STEPS).outputs(right.feeds)
            right.compute(
                [name for name in self.network.output_names.values() if name not in self.network.graph.inputs]
            )
            self._rounded_outputs = {
                name: as_rounding(right[tensor], found[name]) for name, tensor in self.network.output_names.items()
            }
        return self._rounded_outputs

    def floors(self, right: Activations, fed: Sequence[str], wanted: Sequence[str]) -> Mapping[str, RoundingFloor]:
        """Measure floors, once; of the source, as a target's own rounding may be what's wrong with it.

        Args:
            right: The first batch, with all tensors that are named.
            fed: Tensors that are given, its inputs among them.
            wanted: Tensors that are computed from the nearest of those.
        """
        known = self._floors.setdefault(frozenset(fed), {})
        inputs = self.network.graph.inputs
        missing = [name for name in wanted if name not in known and name not in inputs]
        if missing:
            known.update(self._measured(right, fed, missing))
        return known

    def _measured(self, right: Activations, fed: Sequence[str], wanted: Sequence[str]) -> dict[str, RoundingFloor]:
        disturbed: dict[str, tuple[float, float]] = {}
        for name, array in Pieces.between(self.network, fed, wanted).run(lambda item: shaken(right[item])):
            disturbed[name] = (1.0, 1.0)  # where rounding decides how many there are, it decides everything
            if array.shape == right[name].shape:
                error = RunningError()
                error.add(right[name], array)
                disturbed[name] = (error.error, error.relative_l2)
            del array  # so that nothing holds it while the next piece runs
        differing: dict[str, float] = {}
        other = self._second_opinion()
        if other is not None:
            for name, array in Pieces.between(other, fed, wanted).attempt(functools.partial(_stored, right, other)):
                differing[name] = error_of(right[name], array.reshape(right[name].shape))  # () and (1,) are one
                del array
        return {
            name: RoundingFloor(disturbed[name][0], differing.get(name), carried=disturbed[name][1])
            for name in wanted
        }


def _outputs(other: Network, right: Activations) -> dict[str, Array]:
    """A whole run in another arithmetic."""
    values = {name: _stored(right, other, name) for name in other.graph.inputs}
    values.update(Pieces.in_a_row(other, list(other.output_names.values())).run(values.__getitem__))
    return {name: values[tensor] for name, tensor in other.output_names.items()}


def _stored(right: Activations, network: Network, name: str) -> Array:
    return as_stored(right[name], network.graph.tensors[name])


@dataclass(frozen=True)
class Measured:
    """Outputs of a network by other means, by the model's names.

    Attributes:
        rounded: With each tensor on the way rounded a little more; of the first batch.
        exact: In float64, of each batch; none where that's too much work.
        bounds: How far each element of a right computation may be from that, of each batch.
        own: What the network's runtime gives for these batches.
        simulated: In arithmetics that a device may have, by their names; of the first batch.
        kernel: In words, which operator its runtime computes with a larger error than rounding explains.
    """

    rounded: Mapping[str, Array] | None = None
    exact: Sequence[Mapping[str, Array]] = ()
    bounds: Sequence[Mapping[str, Array]] = ()
    own: Sequence[Mapping[str, Array]] = ()
    simulated: Mapping[str, Mapping[str, Array]] = field(default_factory=lambda: MappingProxyType({}))
    kernel: str = ""


def measured(
    reference: Reference,
    right: Activations,
    arithmetics: Collection[str] = (),
    batches: Iterable[Mapping[str, Array]] = (),
) -> Measured:
    """Measure all.

    Args:
        reference: The network.
        right: The first batch through it.
        arithmetics: Names of those to simulate.
        batches: Inputs of all batches that are compared, by tensor.
    """
    network = reference.network
    rounded, kernel, run = reference.rounded_outputs(right), None, None
    simulated: dict[str, Mapping[str, Array]] = {}
    held: list[list[Mapping[str, Array]]] = [[], [], []]
    names, left = network.output_names, numbers.WORK
    ends = [end for end in dict.fromkeys(names.values()) if end not in network.graph.inputs]
    if not ends:
        return Measured(rounded)
    for name in arithmetics:
        with contextlib.suppress(InferenceError):  # what it makes of a number may be no index
            simulated[name] = Simulated(network, arithmetic_of(name)).outputs(right.feeds)
    for feeds in batches:
        found = exact_values(network, feeds, ends, most=left)
        if found is None or any(end in found.estimated or end not in found.values for end in ends):
            return Measured(rounded, simulated=simulated)
        left -= found.work
        run = run or network.segment(network.graph.inputs, ends)
        given = run.run(feeds)
        if kernel is None and any(beside(given[end], found.values[end], found.bounds[end]).beyond for end in ends):
            kernel = first_wrong_kernel(network, found)
            if kernel is None:
                return Measured(rounded, simulated=simulated)  # who's off isn't known
        parts = (found.values, found.bounds, {**feeds, **given})
        for batch, part in zip(held, parts, strict=True):
            batch.append({name: part[end] for name, end in names.items() if end in part})
    return Measured(rounded, held[0], held[1], held[2], simulated, "" if kernel is None else str(kernel))

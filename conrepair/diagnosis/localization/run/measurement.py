"""Measure, for every pair of tensors, the error that the target introduces there, the one it has, and the floor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.run.activations import Activations, Isolation, add_result
from conrepair.diagnosis.localization.run.reference import Reference, RoundingFloor
from conrepair.formats.networks.network import Network
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.metrics.running_error import RunningError
from conrepair.ground.metrics.spread import HARDLY_ANY, spread_between_samples

_WHOLE = 8  # samples, of which one near-tie isn't a quarter of the answers
_STEPS = 2**8
_FULL = 2  # batches that errors of whole runs are measured on: floors are of the first one

Feeds = tuple[Mapping[str, Array], Mapping[str, Array]]
"""One batch: the source's and the target's inputs, by the names of their graphs' tensors."""


@dataclass
class CutOff:
    """What a range that a tensor is stored in doesn't hold of the source's values.

    Attributes:
        low: Smallest value that it holds.
        high: Largest.
        beyond: Largest share of a limit that a value is: 1 and less where all values are held.
        least: Smallest value that there is.
        most: Largest.
    """

    low: float
    high: float
    beyond: float = 0.0
    least: float = math.inf
    most: float = -math.inf
    _lost: float = 0.0
    _squares: float = 0.0
    _outside: int = 0
    _count: int = 0

    def add(self, values: Array) -> None:
        """Count a batch."""
        exact = np.asarray(values, dtype=np.float64)
        cut = np.abs(exact - exact.clip(self.low, self.high))
        self.least, self.most = float(exact.min(initial=self.least)), float(exact.max(initial=self.most))
        self._outside += int(np.count_nonzero(cut > (self.high - self.low) / _STEPS))
        self._count += exact.size
        self._lost += float(np.sum(np.square(cut)))
        self._squares += float(np.sum(np.square(exact)))
        for limit, edge in ((self.low, exact.min(initial=0)), (self.high, exact.max(initial=0))):
            if edge:
                self.beyond = max(self.beyond, float(edge) / limit if limit else math.inf)

    @property
    def share(self) -> float:
        """Of the values, those that are beyond the range by a step of eight bits."""
        return self._outside / self._count if self._count else 0.0

    @property
    def relative_l2(self) -> float:
        """Relative L2 of what is lost by clipping."""
        return math.sqrt(self._lost / self._squares) if self._squares else 0.0


@dataclass
class Cut:
    """What was measured at a pair.

    Attributes:
        pair: The tensors.
        introduced: Target against source where the target is fed the source's activations at the cuts before.
        full: Target against source where both ran from their inputs on.
        floor: What rounding makes of the source's result.
        cut_off: What the range that the target stores it in doesn't hold (None where it has no range).
        spread: How much of the source's values depends on the inputs, 0 to 1; None where one sample was looked at.
    """

    pair: Pair
    introduced: RunningError = field(default_factory=RunningError)
    full: RunningError = field(default_factory=RunningError)
    floor: RoundingFloor = field(default_factory=RoundingFloor)
    cut_off: CutOff | None = None
    spread: float | None = None

    @property
    def tells(self) -> bool:
        """Whether the error says anything of what computes it.

        Nothing but NaN doesn't, and nor do values that hardly depend on the inputs, where the error is larger than
        all that does: whatever is computed in front of them is as far off.
        """
        if self.introduced.untold >= self.introduced.count:
            return False
        constant = self.spread is not None and self.spread < HARDLY_ANY
        return not constant or self.introduced.relative_l2 <= (self.spread or 0.0)


def measure(
    reference: Reference,
    pairs: Sequence[Pair],
    given: Activations,
    rest: Iterable[Feeds],
    *,
    outputs: Sequence[Pair] = (),
    whole: int = _WHOLE,
    observe: Callable[[Activations, Activations], None] = lambda _right, _given: None,
    ranges: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> list[Cut]:
    """Measure all pairs over all batches; floors on the first batch.

    Args:
        reference: The network that is right, with the first batch.
        pairs: From the alignment; fed and measured.
        given: The first batch through the network in question; that's what it holds then.
        rest: Any number of further batches; each is dropped when it's done.
        outputs: Pairs that are measured and not fed: what the target gives where the source gives something else.
        whole: How many samples at least the target runs as a whole, too, for its answers; what it introduces is
            measured on all, errors of whole runs on the first two batches of these.
        observe: Called with each batch that both ran as a whole.
        ranges: Of values, by the target's tensors that are stored in few bits.

    Returns:
        In the target's order, but for those that are an input of the target: nothing computes them.
    """
    first, graph = given.feeds, given.network.graph
    measured = [pair for pair in (*pairs, *outputs) if pair.target not in graph.inputs]
    every = [
        Cut(pair, cut_off=CutOff(*ranges[pair.target]) if pair.target in ranges else None)
        for pair in sorted(measured, key=lambda pair: graph.order[pair.target])
    ]
    batches, seen = itertools.chain([(reference.first.feeds, first)], rest), 0
    for number, (right, theirs) in enumerate(introduced(reference, given.network, pairs, every, batches)):
        if seen < whole:
            seen += _rows(theirs)
            if number:
                given.renew(theirs)
            given.compute([cut.pair.target for cut in every])
            for cut in every if number < _FULL else ():
                add_result(cut.full, cut.pair, right[cut.pair.source], given[cut.pair.target])
            observe(right, given)
    if given.feeds is not first:
        given.renew(first)  # whoever looks on has the first batch of both
    right = reference.first
    floors = reference.floors((pair.source for pair in pairs), [cut.pair.source for cut in every])
    for cut in every:
        cut.floor = floors.get(cut.pair.source, cut.floor)
        cut.spread = spread_between_samples(right[cut.pair.source]) if right[cut.pair.source].ndim else None
    return every


def introduced(
    reference: Reference, target: Network, pairs: Sequence[Pair], cuts: Sequence[Cut], batches: Iterable[Feeds]
) -> Iterator[tuple[Activations, Mapping[str, Array]]]:
    """Add what a target introduces at cuts, batch by batch.

    Args:
        reference: The network that is right.
        target: The one in question.
        pairs: Where that is fed.
        cuts: What is computed from the nearest of these; their errors grow.
        batches: Inputs of both.

    Yields:
        What the source computes of a batch that was added, and the target's inputs.
    """
    wanted: dict[str, list[Cut]] = {}
    for cut in cuts:
        wanted.setdefault(cut.pair.target, []).append(cut)
    isolated = Isolation(target, pairs, list(wanted), keep=True)
    sources = [pair.source for pair in (*pairs, *(cut.pair for cut in cuts))]
    for number, (ours, theirs) in enumerate(batches):
        right = reference.batch(number, ours)
        right.compute(sources, keep=number > 0)
        for name, array in isolated.run(right.__getitem__, theirs):
            for cut in wanted[name]:
                add_result(cut.introduced, cut.pair, right[cut.pair.source], array)
                if cut.cut_off is not None:
                    cut.cut_off.add(right[cut.pair.source])
            del array  # so that nothing holds it while the next piece runs
        yield right, theirs


def _rows(feeds: Mapping[str, Array]) -> int:
    return max((len(array) for array in feeds.values() if array.ndim), default=1)

"""Which cuts are guilty: introduced errors against what rounding, or quantization, explains."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.numbers import judging
from conrepair.diagnosis.localization.run.activations import Activations, Isolation
from conrepair.diagnosis.localization.run.measurement import Cut
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.metrics.running_error import error_of
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.judging.arithmetic import FLOAT32, arithmetic_of
from conrepair.verdicts.judging.exact import Exact, exact_values, is_confirmed
from conrepair.verdicts.judging.floor import Rounding
from conrepair.verdicts.judging.recognition import fit
from conrepair.verdicts.judging.simulation import Simulated
from conrepair.verdicts.truth.judging import beside, is_sharp


@dataclass(frozen=True)
class Judged:
    """The verdict on the segment in front of a boundary.

    Attributes:
        cut: The measurement.
        introduced: The error that the target introduces there, as it's judged by: of all elements, or of those that
            a few large ones hide.
        full: The same in the full run.
        floor: What rounding explains of it.
        guilty: Whether more was introduced than that times the margin, or an output shows that it matters.
        effect: By how much outputs differ through what's introduced here, where only they show it; None elsewhere.
        allowed: That the error may be.
        weights: Of the floor, what comes of the rounding of weights, which are compared number by number, too.
        proven: Whether its numbers are proven to be right: by bounds, or as those of the arithmetic it computes in.
    """

    cut: Cut
    introduced: float
    full: float
    floor: float
    guilty: bool
    effect: float | None = None
    allowed: float = math.inf
    weights: float = 0.0
    proven: bool = False

    @property
    def tells(self) -> bool:
        """Whether the comparison says anything of its segment: that it's faulty, or that it's right.

        A few times what a large error is taken for is half noise: what passes with one may be a fault as well, unless
        the rounding of its weights explains it.
        """
        passed = min(self.cut.introduced.relative_l2, self.cut.full.relative_l2)
        least = max(judging.MOST_EXPLAINED / judging.MARGIN_OF_BITS, judging.MARGIN_OF_BITS * self.weights)
        return self.guilty or self.proven or (self.cut.tells and passed <= least)

    @property
    def inherited(self) -> float:
        """Share of the full run's error that came from before, 0 to 1."""
        if not self.full or not math.isfinite(self.full):
            return 0.0
        return max(0.0, 1.0 - min(self.introduced, self.full) / self.full)


def judge_cut(
    cut: Cut, *, operators: int, precision: str, margin: float, quantization: float = 0.0, weights: float = 0.0
) -> Judged:
    """Judge the segment in front of a boundary.

    The floor is the largest of: what the result changes by when what's read changes in its last places, what it
    differs by in another arithmetic, and a few units in the last place for each operator. Where the full run gives
    the source's values, nothing is wrong, whatever is introduced: what was fed stood for something else. Of a
    quantized target, what its bit widths explain is the floor; as that is no rounding in the last place but an error
    of known size, a few times it is as much as there may be.

    Args:
        cut: The measurement.
        operators: How many lie between the cuts.
        precision: That the target is meant to compute in, or its source stores the result in, whichever is coarser.
        margin: How many times the floor an error may be.
        quantization: The error that bit widths explain; 0 for a target that isn't quantized on purpose.
        weights: What those of weights explain of it.
    """
    rounding = Rounding(operators=operators, precision=precision, measured_in=FLOAT32.name, units=judging.STEP_ERROR)
    other, disturbed = cut.floor.other or 0.0, cut.floor.disturbed
    credible = other if other <= numbers.LARGEST_OF_KERNELS else 0.0
    floor = max(rounding.estimate, rounding.scale * disturbed if math.isfinite(disturbed) else 0.0, credible)
    allowed = max(margin * floor, min(judging.MARGIN_OF_BITS * quantization, judging.MOST_EXPLAINED))
    if quantization:  # a few large values take the bits of all others, as is meant
        introduced, full = cut.introduced.relative_l2, cut.full.relative_l2
    else:
        introduced, full = cut.introduced.error, cut.full.error
    guilty = is_above(introduced, full, allowed)
    return Judged(cut, introduced, full, max(floor, quantization), guilty, allowed=allowed, weights=weights)


def is_above(introduced: float, full: float, allowed: float) -> bool:
    """Whether more was introduced than may be, where the full run shows it, too.

    Args:
        introduced: The error that the target introduces.
        full: The same in the full run.
        allowed: That it may be.
    """
    above = introduced > allowed and full > allowed
    return above and (introduced < judging.HIDDEN * full or math.isinf(introduced))


def acquit_unread_bodies(
    judged: Sequence[Judged], readers: Mapping[str, Sequence[str]], *, rounds: bool = True
) -> list[Judged]:
    """Acquit cuts that are wrong in a body only, or in what nothing reads, which their readers don't tell apart.

    Libraries compute functions to so many digits of their largest values, not of each: the tail of a sigmoid, a GELU
    or a SiLU has few right digits. That's no fault where what's computed from it has them all; scores behind a mask,
    which a softmax reads, change what it gives. Where what's computed from a cut is the source's throughout, next to
    what differs, that isn't read: scores under a mask, which is -1e4 or is added to them.

    Args:
        judged: All cuts, each behind those that it's computed from.
        readers: What's computed from each cut, by the target's names.
        rounds: Whether a target differs by rounding alone where it's right; one in few bits hides more.
    """
    differing = {item.cut.pair.target for item in judged if item.full > item.allowed}
    told = {item.cut.pair.target for item in judged if item.cut.full.relative_l2 > item.allowed}
    items = {item.cut.pair.target: item for item in judged}
    read, undone = set[str](), set[str]()
    came: dict[str, float] = {}  # the most that came from before in a cut, or in anything computed from it
    for name, item in reversed(items.items()):
        behind = readers.get(name, ())
        if not differing.intersection(behind).isdisjoint(told | read):
            read.add(name)
        left = max((came[reader] for reader in behind), default=0.0)
        if rounds and behind and left <= judging.UNREAD * item.full:
            undone.add(name)
        came[name] = max(left, item.full - item.introduced if item.introduced < item.full else 0.0)
    seen = (told - undone) | read
    return [
        replace(item, guilty=False) if item.guilty and item.cut.pair.target not in seen else item for item in judged
    ]


def acquit_explained(
    first: tuple[Activations, Activations],
    pairs: Sequence[Pair],
    judged: Sequence[Judged],
    arithmetics: Collection[str] = (),
) -> list[Judged]:
    """Acquit pieces each of whose numbers is near its exact value, or as an arithmetic makes it.

    Bounds of rounding are taken for a proof where all together they're no larger than the error that's allowed.

    Args:
        first: A batch through the network that is right, and through the one in question.
        pairs: The cuts.
        judged: All of them.
        arithmetics: Names of those that the network in question is known to compute in.
    """
    if not any(item.guilty for item in judged):
        return list(judged)
    right, given = first
    network = right.network
    inputs, isolated = network.graph.inputs, Isolation(given.network, pairs)
    nearest = network.graph.feeding({*inputs, *(pair.source for pair in pairs)})
    simulated = {name: Simulated(network, arithmetic_of(name)) for name in arithmetics}
    found, left = [], numbers.WORK
    for item in judged:
        pair, array = item.cut.pair, None
        if item.guilty and pair.source in nearest:
            array = isolated.trial(pair.target, functools.partial(isolated.fed, right.__getitem__, given.feeds))
        if array is not None and array.size == right[pair.source].size:
            array = pair.layout.to_source(array)
            first_one = error_of(right[pair.source], array)
            if item.introduced <= numbers.OTHERS * first_one < math.inf:  # else other batches show it
                feeds = {name: right[name] for name in (*inputs, *nearest[pair.source])}
                exact = exact_values(network, feeds, [pair.source], most=left)
                left -= 0.0 if exact is None else exact.work
                explained = (
                    exact is not None
                    and _is_within(array, exact, pair.source, item.allowed)
                    and is_confirmed(network, feeds.keys(), exact, pair.source)
                ) or any(
                    fit(name, right[pair.source], array, other.tensor(feeds, pair.source)).explains
                    for name, other in simulated.items()
                )
                item = replace(item, guilty=not explained, proven=explained)
        found.append(item)
    return found


def _is_within(array: Array, exact: Exact, name: str, allowed: float) -> bool:
    """Whether each number is within a bound that says something."""
    if name not in exact.values or name in exact.estimated:
        return False
    value, bound = exact.values[name], exact.bounds[name]
    return is_sharp(value, bound, allowed) and not beside(array, value, bound).beyond

"""Pieces whose error only the outputs show: found by feeding the source's values behind more and more of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conrepair.diagnosis.localization.align.alignment import Alignment
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.judge.agreement import AnswerPairs
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.numbers import judging
from conrepair.diagnosis.localization.run.activations import Activations, Isolation
from conrepair.ground.graph.layer_graph import Array
from conrepair.verdicts.evaluate.compare import ComparedOutputs
from conrepair.verdicts.judging.arithmetic import shaken

_MOST = 64  # pieces that are looked for one behind the other


@dataclass(frozen=True)
class Explained:
    """Which pieces the outputs' error comes from.

    Attributes:
        judged: All cuts; those that were found here are guilty, too.
        before: The outputs of the target as it is, on the first batch.
        left: The same with the source's values fed behind all guilty pieces.
        by_rounding: Cuts at which rounding does as much to the outputs as what the target introduces.
    """

    judged: tuple[Judged, ...]
    before: ComparedOutputs
    left: ComparedOutputs
    by_rounding: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Share of the outputs' error that the guilty pieces bring, 0 to 1; 1 where there is none."""
        before, left = _worst(self.before), _worst(self.left)
        return 1.0 if not self.left.differs or not before else max(0.0, 1.0 - left / before)


def explain_outputs(
    first: tuple[Activations, Activations],
    alignment: Alignment,
    judged: Sequence[Judged],
    answers: AnswerPairs,
    margin: float,
) -> Explained:
    """Look for the pieces that make the outputs wrong and seem right where they end.

    What a piece introduces may be no more than rounding by every measure and yet decide the answer: its reader may
    take away what makes it look small. So the source's values are fed behind the first pieces, more and more of them,
    until the outputs are right (a bisection, a run of the target each); the last piece that was needed is at fault,
    where the outputs are further off by what it introduces than by rounding there, and the search begins again with
    it corrected.

    Args:
        first: A batch through the network that is right, and through the one in question.
        alignment: Of both.
        judged: All cuts.
        answers: Judges outputs.
        margin: How many times what rounding does to the outputs a piece may do.
    """
    run = _Runs(first, alignment, answers, {item.cut.pair.target: item for item in judged})
    found: dict[str, float] = {}
    before = run.outputs((), inputs=False)
    guilty = [item.cut.pair for item in judged if item.guilty]
    known, cleared = list(guilty), list[str]()
    left = run.outputs(known)
    if left.differs and not left.unpaired:
        answers.measure_rounding()  # what is left may be that
        left = run.outputs(known)
    while left.differs and not left.unpaired and len(found) + len(cleared) < _MOST:
        culprit = run.last_needed(known)
        if culprit is None or culprit[0] in {*found, *cleared}:
            break
        name, effect, rounding = culprit
        if effect > margin * rounding:
            found[name] = effect
        else:
            cleared.append(name)
        known.append(run.pairs[name])
        left = run.outputs(known)
    if cleared:
        left = run.outputs([*guilty, *(run.pairs[name] for name in found)])
    effects = (None if item.guilty else found.get(item.cut.pair.target) for item in judged)
    marked = tuple(
        item if effect is None else dataclasses.replace(item, guilty=True, effect=effect)
        for item, effect in zip(judged, effects, strict=True)
    )
    return Explained(marked, before, left, tuple(cleared))


def _worst(compared: ComparedOutputs) -> float:
    return max((output.decisive for output in compared.outputs), default=0.0)


class _Runs:
    """Runs of the target that go on from the source's values."""

    def __init__(
        self,
        first: tuple[Activations, Activations],
        alignment: Alignment,
        answers: AnswerPairs,
        judged: Mapping[str, Judged],
    ) -> None:
        self._right, self._given = first
        self._answers, self._judged = answers, judged
        graph = self._given.network.graph
        own = {pair.target: pair for pair in alignment.pairs if pair.target not in graph.inputs}
        self._cuts = sorted(own.values(), key=lambda pair: graph.order[pair.target])
        self._inputs = [pair for pair in alignment.pairs if pair.target in graph.inputs]
        self.pairs = own | {pair.target: pair for pair in alignment.outputs if pair.target not in own}
        self._right.compute([pair.source for pair in (*self._inputs, *self.pairs.values())])

    def outputs(self, fed: Sequence[Pair], disturbed: str = "", *, inputs: bool = True) -> ComparedOutputs:
        """The outputs where the source's values are fed at some cuts; at an output, they are the result.

        Args:
            fed: The cuts.
            disturbed: The source's tensor that's fed as if it were rounded a little more; "" for none.
            inputs: Whether the target's inputs are the source's, too, and not what the target is given.
        """
        fed = [*(self._inputs if inputs else ()), *fed]
        isolated = Isolation(self._given.network, fed, list(self._given.network.output_names.values()))

        def fetch(name: str) -> Array:
            return shaken(self._right[name]) if name == disturbed else self._right[name]

        values = dict(isolated.run(fetch, self._given.feeds))
        ends = values.keys() & {pair.target for pair in fed}
        values |= {name: isolated.fed(fetch, self._given.feeds, name) for name in ends}
        return self._answers.compared({**values, **self._given.feeds})

    def last_needed(self, known: Sequence[Pair]) -> tuple[str, float, float] | None:
        """The last cut that must be fed for the outputs to be right, and what depends on it.

        Args:
            known: Cuts that are fed in any case.

        Returns:
            Its tensor, by how much outputs differ where that one isn't fed, and by how much where what's fed there
            is disturbed as by rounding; None where no cut makes them right.
        """
        taken = {pair.target for pair in known}
        cuts = [pair for pair in self._cuts if pair.target not in taken]
        low, high = 0, len(cuts)
        ending = self.outputs([*known, *cuts])
        if ending.differs:
            return self._wrong_end(ending)
        while high - low > 1:
            middle = (low + high) // 2
            if self.outputs([*known, *cuts[:middle]]).differs:
                low = middle
            else:
                high = middle
        culprit, before = cuts[high - 1], cuts[: high - 1]
        effect = _worst(self.outputs([*known, *before]))
        without = _worst(self.outputs([*known, *before, culprit]))
        known_right = culprit.target in self._judged and not self._judged[culprit.target].introduced
        if known_right or without > judging.LEFT * effect:
            return culprit.target, 0.0, 0.0  # it only tips the scales
        return culprit.target, effect, _worst(self.outputs([*known, *before, culprit], culprit.source))

    def _wrong_end(self, compared: ComparedOutputs) -> tuple[str, float, float] | None:
        """The output that's furthest off though everything before it is the source's."""
        for item in sorted(compared.outputs, key=lambda item: -item.decisive):
            tensor = self._given.network.output_names[item.pair.candidate]
            if not item.verdict.is_right and tensor in self.pairs:
                return tensor, item.decisive, self._judged[tensor].floor if tensor in self._judged else 0.0
        return None

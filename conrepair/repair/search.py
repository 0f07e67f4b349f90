"""Search the edits that mend a target: the guiltiest piece first, each with the smallest edit that helps."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conrepair.editors.editor import NotEditableError
from conrepair.editors.registry import open_editor
from conrepair.frameworks.model import Model
from conrepair.localize.localize import Found
from conrepair.localize.located import Guilty
from conrepair.repair.bench import Bench
from conrepair.repair.edits import ExchangeInputs, ExchangeOutputs, in_words
from conrepair.repair.patch import Patch
from conrepair.repair.proposals.all import proposals
from conrepair.repair.proposals.proposal import Proposal
from conrepair.runtime.errors import ConrepairError

__all__ = ["Outcome", "search"]

_BETTER = 0.5  # of the outputs' error, at most, for an edit that mends no single piece to count


@dataclass
class Outcome:
    """What a search came to.

    Attributes:
        patch: The edits that help, and no others.
        before: The target as it came.
        after: With the patch.
        tried: How many candidates were judged.
        effects: For each edit that was taken, in words, what it bought.
        in_time: Whether the search ended by itself.
    """

    patch: Patch
    before: Found
    after: Found
    tried: int = 0
    effects: list[str] = field(default_factory=list)
    in_time: bool = True


def search(bench: Bench, model: Model, folder: Path, *, seconds: float) -> Outcome:
    """Mend a target.

    Args:
        bench: Judges.
        model: The target as it came; its file isn't changed.
        folder: For candidates; they're removed.
        seconds: After which no further candidate is begun. The best state that was verified is kept.
    """
    return _Search(bench, model, folder, time.monotonic() + seconds).run()


class _Search:
    def __init__(self, bench: Bench, model: Model, folder: Path, end: float) -> None:
        self._bench, self._model, self._folder, self._end = bench, model, folder, end

    def run(self) -> Outcome:
        before = self._bench.localize(self._model)
        outcome = Outcome(Patch(), before, before)
        while outcome.after.result.faults and self._mend_one(outcome):
            pass
        self._minimize(outcome)
        return outcome

    def _mend_one(self, outcome: Outcome) -> bool:
        """Take the first edit that mends something; whether there was one."""
        found = outcome.after
        for piece, proposal in self._candidates(found):
            if time.monotonic() > self._end:
                outcome.in_time = False
                return False
            patch = outcome.patch.with_edits(proposal)
            again = self._judged(patch)
            outcome.tried += 1
            if again is not None and _mends(again, found, piece):
                words = "; ".join(map(in_words, proposal))
                gained = f"outputs differ by {again.result.output_error:.1e}, {found.result.output_error:.1e} before"
                outcome.effects.append(f"{words}: {gained}")
                outcome.patch, outcome.after = patch, again
                return True
        return False

    def _candidates(self, found: Found) -> Iterator[tuple[Guilty | None, Proposal]]:
        editor = open_editor(self._model)
        for piece in sorted(found.guilty, key=lambda piece: -piece.judged.cut.introduced.relative_l2):
            yield from ((piece, proposal) for proposal in proposals(piece.region, editor))
        for kind, names in ((ExchangeOutputs, editor.graph.outputs), (ExchangeInputs, editor.graph.inputs)):
            for one, two in itertools.combinations(range(len(names)), 2):
                yield None, (kind(one, two),)

    def _judged(self, patch: Patch) -> Found | None:
        """What localization says of the model with a patch; None when it can't be written, loaded, or run."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            try:
                changed = patch.apply(self._model, Path(folder), "candidate")
                return self._bench.localize(changed)
            except (NotEditableError, ConrepairError):
                return None
            # Whatever a framework says about a candidate, it's no repair.
            except Exception:  # noqa: BLE001
                return None

    def _minimize(self, outcome: Outcome) -> None:
        """Drop each edit without which the result is as good."""
        place = 0
        while len(outcome.patch.edits) > 1 and place < len(outcome.patch.edits) and time.monotonic() < self._end:
            fewer = outcome.patch.without(place)
            again = self._judged(fewer)
            outcome.tried += 1
            if again is not None and len(again.result.faults) <= len(outcome.after.result.faults):
                outcome.patch, outcome.after = fewer, again
                del outcome.effects[min(place, len(outcome.effects) - 1)]
            else:
                place += 1


def _mends(again: Found, found: Found, piece: Guilty | None) -> bool:
    """Whether a candidate is better: its piece isn't guilty any more, and nothing else is that wasn't."""
    guilty = _sources(again.guilty)
    known = _sources(found.guilty)
    if piece is None:
        return len(again.result.faults) < len(found.result.faults) and guilty <= known
    here = piece.judged.cut.pair.source
    if guilty - known or here in guilty:
        return False
    fewer = len(again.result.faults) <= len(found.result.faults)
    return fewer and (not again.result.faults or again.result.output_error <= found.result.output_error)


def _sources(pieces: Sequence[Guilty]) -> set[str]:
    return {piece.judged.cut.pair.source for piece in pieces}

"""Search the edits that mend a target: the guiltiest piece first, each with the smallest edit that helps."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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

__all__ = ["Outcome", "Taken", "search"]


@dataclass(frozen=True)
class Taken:
    """A proposal that helped.

    Attributes:
        edits: What is left of it.
        gain: In words.
    """

    edits: Proposal
    gain: str


@dataclass
class Outcome:
    """What a search came to.

    Attributes:
        before: The target as it came.
        after: With the patch.
        taken: The proposals that help, in the order in which they were found.
        tried: How many candidates were judged.
        in_time: Whether the search ended by itself.
        refused: What the target's format can't express of what was proposed, each once.
    """

    before: Found
    after: Found
    taken: tuple[Taken, ...] = ()
    tried: int = 0
    in_time: bool = True
    refused: tuple[str, ...] = ()

    @property
    def patch(self) -> Patch:
        """The edits that help, and no others."""
        return _patch_of(self.taken)

    @property
    def effects(self) -> tuple[str, ...]:
        """For each proposal, in words, what it does and what that bought."""
        return tuple(f"{'; '.join(map(in_words, item.edits))}: {item.gain}" for item in self.taken)


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
        self._refused: dict[str, None] = {}

    def run(self) -> Outcome:
        before = self._bench.localize(self._model)
        outcome = Outcome(before, before)
        while outcome.after.result.faults and self._mend_one(outcome):
            pass
        self._minimize(outcome)
        outcome.refused = tuple(self._refused)
        return outcome

    def _mend_one(self, outcome: Outcome) -> bool:
        """Take the first edit that mends something; whether there was one."""
        found = outcome.after
        for piece, proposal in self._candidates(found):
            if time.monotonic() > self._end:
                outcome.in_time = False
                return False
            again = self._judged(Patch((*outcome.patch.edits, *proposal)))
            outcome.tried += 1
            if again is not None and _mends(again, found, piece):
                gain = f"outputs differ by {again.result.output_error:.1e}, {found.result.output_error:.1e} before"
                outcome.taken, outcome.after = (*outcome.taken, Taken(proposal, gain)), again
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
            except NotEditableError as error:
                self._refused.setdefault(str(error))
                return None
            # Whatever an editor or a framework says about a candidate, it's no repair.
            except Exception:  # noqa: BLE001
                return None

    def _minimize(self, outcome: Outcome) -> None:
        """Drop each edit without which the result is as good."""
        place = 0
        while len(outcome.patch.edits) > 1 and place < len(outcome.patch.edits) and time.monotonic() < self._end:
            fewer = _without(outcome.taken, place)
            again = self._judged(_patch_of(fewer))
            outcome.tried += 1
            if again is not None and len(again.result.faults) <= len(outcome.after.result.faults):
                outcome.taken, outcome.after = fewer, again
            else:
                place += 1


def _patch_of(taken: Sequence[Taken]) -> Patch:
    return Patch(tuple(edit for item in taken for edit in item.edits))


def _without(taken: Sequence[Taken], place: int) -> tuple[Taken, ...]:
    """Without one edit of all, and without a proposal of which none is left."""
    numbered = itertools.count()
    left = [replace(item, edits=tuple(edit for edit in item.edits if next(numbered) != place)) for item in taken]
    return tuple(item for item in left if item.edits)


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

"""Search the edits that mend a target: the guiltiest piece first, each with the smallest edit that helps."""

from __future__ import annotations

import hashlib
import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conrepair.config.model import EditKind
from conrepair.editors.editor import Editor
from conrepair.editors.registry import open_editor
from conrepair.frameworks.model import Model
from conrepair.localize.localize import Found
from conrepair.localize.located import Guilty
from conrepair.repair.bench import Bench
from conrepair.repair.edits import ExchangeInputs, ExchangeOutputs, in_words
from conrepair.repair.kinds import kind_of
from conrepair.repair.patch import Patch
from conrepair.repair.proposals.all import proposals
from conrepair.repair.proposals.proposal import Proposal
from conrepair.runtime.files import explain_write_error
from conrepair.runtime.journal import Journal

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
        in_time: Whether the search ended within its time.
        interrupted: Whether it was asked to end.
        recalled: Candidates of `tried` that an earlier search had judged.
    """

    before: Found
    after: Found
    taken: tuple[Taken, ...] = ()
    tried: int = 0
    in_time: bool = True
    interrupted: bool = False
    recalled: int = 0

    @property
    def patch(self) -> Patch:
        """The edits that help, and no others."""
        return _patch_of(self.taken)

    @property
    def effects(self) -> tuple[str, ...]:
        """For each proposal, in words, what it does and what that bought."""
        return tuple(f"{'; '.join(map(in_words, item.edits))}: {item.gain}" for item in self.taken)


def search(
    bench: Bench,
    model: Model,
    folder: Path,
    *,
    seconds: float,
    journal: Journal | None = None,
    kinds: frozenset[EditKind] | None = None,
) -> Outcome:
    """Mend a target.

    Args:
        bench: Judges.
        model: The target as it came; its file isn't changed.
        folder: For candidates; they're removed.
        seconds: After which no further candidate is begun. The best state that was verified is kept.
        journal: Keeps which candidates are none, for a search that goes on where this one is stopped; may ask it to
            end.
        kinds: Of edits; None: all.

    Raises:
        OSError: if there's no room for candidates.
    """
    return _Search(
        bench, model, folder, time.monotonic() + seconds, Journal() if journal is None else journal, kinds
    ).run()


class _Search:
    def __init__(
        self,
        bench: Bench,
        model: Model,
        folder: Path,
        end: float,
        journal: Journal,
        kinds: frozenset[EditKind] | None,
    ) -> None:
        self._bench, self._model, self._folder, self._end = bench, model, folder, end
        self._journal, self._kinds = journal, kinds

    def run(self) -> Outcome:
        before = self._bench.localize(self._model)
        outcome = Outcome(before, before)
        while outcome.after.result.faults and self._mend_one(outcome):
            pass
        self._minimize(outcome)
        return outcome

    def _mend_one(self, outcome: Outcome) -> bool:
        """Take the first edit that mends something; whether there was one."""
        found = outcome.after
        for piece, proposal in self._candidates(found):
            if self._over(outcome):
                return False
            patch = Patch((*outcome.patch.edits, *proposal))
            again = self._judged(patch, outcome)
            if again is not None and _mends(again, found, piece):
                gain = f"outputs differ by {again.result.output_error:.1e}, {found.result.output_error:.1e} before"
                outcome.taken, outcome.after = (*outcome.taken, Taken(proposal, gain)), again
                return True
            self._journal.add(self._line(patch))
        return False

    def _over(self, outcome: Outcome) -> bool:
        """Whether nothing else shall be tried."""
        outcome.interrupted = self._journal.asked_to_end
        outcome.in_time = outcome.in_time and time.monotonic() <= self._end
        return outcome.interrupted or not outcome.in_time

    def _line(self, patch: Patch) -> str:
        """What a candidate that is none is known by: all its edits, and how it's fed."""
        fed = repr((self._bench.target.recipe, self._bench.target.data.count))
        return hashlib.sha256(f"{patch.digest} {fed}".encode()).hexdigest()

    def _candidates(self, found: Found) -> Iterator[tuple[Guilty | None, Proposal]]:
        """Those of the sorts that are wanted."""
        editor = open_editor(self._model)
        for piece, proposal in self._proposed(found, editor):
            if self._kinds is None or {kind_of(edit, editor.graph) for edit in proposal} <= self._kinds:
                yield piece, proposal

    @staticmethod
    def _proposed(found: Found, editor: Editor) -> Iterator[tuple[Guilty | None, Proposal]]:
        for piece in sorted(found.guilty, key=lambda piece: -piece.judged.cut.introduced.relative_l2):
            yield from ((piece, proposal) for proposal in proposals(piece.region, editor))
        for kind, names in ((ExchangeOutputs, editor.graph.outputs), (ExchangeInputs, editor.graph.inputs)):
            for one, two in itertools.combinations(range(len(names)), 2):
                yield None, (kind(one, two),)

    def _judged(self, patch: Patch, outcome: Outcome) -> Found | None:
        """What localization says of the model with a patch; None when it can't be written, loaded, or run.

        None, too, when an earlier search has found it to be no good.
        """
        outcome.tried += 1
        if self._line(patch) in self._journal:
            outcome.recalled += 1
            return None
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            try:
                changed = patch.apply(self._model, Path(folder), "candidate")
                return self._bench.localize(changed)
            # Whatever an editor or a framework says about a candidate, it's no repair.
            except Exception as error:
                if explain_write_error(error, self._folder) is not None:
                    raise  # that says nothing about the candidate
                return None

    def _minimize(self, outcome: Outcome) -> None:
        """Drop each edit without which the result is as good."""
        place = 0
        while len(outcome.patch.edits) > 1 and place < len(outcome.patch.edits) and not self._over(outcome):
            fewer = _without(outcome.taken, place)
            again = self._judged(_patch_of(fewer), outcome)
            if again is not None and len(again.result.faults) <= len(outcome.after.result.faults):
                outcome.taken, outcome.after = fewer, again
            else:
                self._journal.add(self._line(_patch_of(fewer)))
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

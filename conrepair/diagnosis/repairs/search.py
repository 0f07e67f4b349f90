"""Search the edits that fix a target: the guiltiest piece first, each with the smallest edit that helps."""

from __future__ import annotations

import functools
import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.localization.located import Guilty
from conrepair.diagnosis.repairs.bench import Alone, Bench
from conrepair.diagnosis.repairs.criteria import computed, error_of, extent, fixes, guiltiest, reach, source_of
from conrepair.diagnosis.repairs.edits import in_words, kind_of
from conrepair.diagnosis.repairs.minimize import minimized
from conrepair.diagnosis.repairs.patch import Patch
from conrepair.diagnosis.repairs.proposals.all import CHANGES, IN_FLOAT, REWRITINGS, proposals
from conrepair.diagnosis.repairs.proposals.ends import end_proposals
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, Proposer
from conrepair.diagnosis.repairs.rounds import Judging, Rounds
from conrepair.diagnosis.repairs.state import VALUES, Candidate, RepairState, Taken, patch_of
from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.models.model import Model
from conrepair.ground.graph.kinds import EditKind
from conrepair.ground.runtime.files.journal import Journal
from conrepair.ground.runtime.files.whole import explain_write_error
from conrepair.ground.runtime.words import percent

STEM = "repaired"

_T = TypeVar("_T")
_RULE = 4  # pieces


@dataclass
class SearchOutcome:
    """The result of a search for a repair.

    Attributes:
        before: The target as it came.
        state: The best that was found, with the proposals that help.
        tried: How many candidates were judged.
        in_time: Whether the search ended within its time.
        interrupted: Whether it was asked to end.
        recalled: Candidates of `tried` that an earlier search had judged.
        refused: What the target's format can't express of what was proposed, each once.
        failed: What went wrong with other candidates, in words, each once: an editor's mistake, or a framework's.
    """

    before: Found
    state: RepairState
    tried: int = 0
    in_time: bool = True
    interrupted: bool = False
    recalled: int = 0
    refused: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def after(self) -> Found:
        """With the patch."""
        return self.state.found

    @property
    def taken(self) -> tuple[Taken, ...]:
        """The proposals that help."""
        return self.state.taken

    @property
    def patch(self) -> Patch:
        """The edits that help, and no others."""
        return patch_of(self.taken)

    @property
    def effects(self) -> tuple[str, ...]:
        """For each proposal its edits and their effect, in words."""
        return tuple(f"{'; '.join(map(in_words, item.edits))}: {item.gain}" for item in self.taken)


def search(
    bench: Bench,
    model: Model,
    folder: Path,
    *,
    seconds: float,
    journal: Journal | None = None,
    kinds: frozenset[EditKind] | None = None,
) -> SearchOutcome:
    """Repair a target.

    Args:
        bench: Judges.
        model: The target as it came; its file isn't changed.
        folder: Receives the candidates that help, as copies of the target called `STEM`; others are removed.
        seconds: After which no further candidate is begun. The best state that was verified is kept.
        journal: Keeps which candidates are none, for a search that goes on where this one is stopped; may ask it to
            end.
        kinds: Of edits; None: all.

    Raises:
        OSError: if there's no room for candidates.
    """
    end = time.monotonic() + seconds
    before = bench.localize(model)
    outcome = SearchOutcome(before, RepairState((), model, before))
    return _EditSearch(bench, model, folder, end, Journal() if journal is None else journal, kinds, outcome).run()


Candidates = Iterator[tuple[Guilty | None, Proposal]]
"""Proposals, each with the segment that it's for."""


@dataclass
class _EditSearch:
    """A search; see `search`.

    Attributes:
        outcome: So far.
        refused: What the format can't express, each once.
        failed: What went wrong with candidates, each once.
        spent: Proposals that made their piece no better, by its tensor in the source.
        helped: The sort of changes that the last piece was repaired by.
    """

    bench: Bench
    model: Model
    folder: Path
    end: float
    journal: Journal
    kinds: frozenset[EditKind] | None
    outcome: SearchOutcome
    refused: dict[str, None] = field(default_factory=dict)
    failed: dict[str, None] = field(default_factory=dict)
    spent: dict[str, set[str]] = field(default_factory=dict)
    helped: Sequence[Proposer] = CHANGES

    def run(self) -> SearchOutcome:
        before = self.outcome.before
        hopeless = self._fix_together(CHANGES)
        # Where as many pieces as one rule makes guilty are left, what none of them was repaired by fixes no other.
        if not self.outcome.taken and len(before.guilty) >= _RULE:
            hopeless = frozenset(map(source_of, before.guilty))
        if len(hopeless) > 1 and not self._over() and not self._fix_ends():
            self._fix_together(REWRITINGS, hopeless)
        states = [self.outcome.state]
        retreats = list[tuple[RepairState, frozenset[str]]]()
        while self.outcome.after.result.faults and self._fix_one(retreats):
            states.append(self.outcome.state)
            # What one piece needed, others need, too.
            if not self._over():
                self._fix_together(self.helped)
        if self.outcome.after.result.faults:
            self.outcome.state = min(states, key=lambda state: error_of(state.found))
        self.outcome.state = minimized(
            self.outcome.state, self._judged, self._over, lambda taken: self.journal.add(self._line(taken))
        )
        self.outcome.refused, self.outcome.failed = tuple(self.refused), tuple(self.failed)
        return self.outcome

    def _fix_together(self, sort: Sequence[Proposer], among: Set[str] | None = None) -> Set[str]:
        """Try one sort of edits in all faulty segments at once, where there are several.

        Args:
            sort: Of changes.
            among: Pieces, by their tensors in the source; None: all.

        Returns:
            Those that no such change makes any better.
        """
        found = self.outcome.after
        if len(found.guilty) < 2:
            return frozenset()

        def propose(piece: Guilty) -> Iterator[Proposal]:
            if among is None or source_of(piece) in among:
                yield from (proposal for _, proposal in self._wanted(self._unspent([piece], found, sort)))

        judging = Judging(
            self._made,
            lambda candidate, pieces: self._alone(candidate, found, pieces),
            self._localized,
            lambda changed, pieces: self._fails(changed, self.outcome.state, pieces),
        )
        rounds = Rounds(judging, propose, self._over)
        self.outcome.state = rounds.run(self.outcome.state)
        for source, spent in rounds.spent.items():
            self.spent.setdefault(source, set()).update(spent)
        return rounds.hopeless

    def _fix_one(self, retreats: list[tuple[RepairState, frozenset[str]]]) -> bool:
        """Take the first edit that fixes a piece, else the one that leaves least of one; whether there was any.

        A piece with several faults can become smaller while they still hide one another, so that the outputs are
        further off for the moment. Only where nothing does that are whole pieces written anew; and only then does
        what computes with integers get real numbers. Where a piece that became smaller can't be repaired after all,
        it's written anew as it was before.

        Args:
            retreats: States in front of edits that only made a piece smaller, each with what the source computes
                there; changed.
        """
        here = self.outcome.state
        if self._advance((CHANGES, REWRITINGS, IN_FLOAT)):
            if self.outcome.taken[-1].left:
                retreats.append((here, self.outcome.taken[-1].left))
            return True
        stuck = extent(self.outcome.after)
        while retreats and not self._over():
            state, piece = retreats.pop()
            if piece & stuck:
                self.outcome.state = state
                if self._advance((REWRITINGS, IN_FLOAT)):
                    return True
        return False

    def _advance(self, sorts: Sequence[Sequence[Proposer]]) -> bool:
        """Take the best edit of the first sort that has any."""
        before, found = self.outcome.state, self.outcome.after
        for sort in sorts:
            self.outcome.state = self._best(self._wanted(self._unspent(guiltiest(found), found, sort)))
            if self.outcome.state is not before or (sort is CHANGES and self._fix_ends()):
                self.helped = sort
                return True
        return False

    def _fix_ends(self) -> bool:
        """Take the best edit of inputs and outputs; whether there is any."""
        before = self.outcome.state
        bench = self.bench
        ends = end_proposals(self.outcome.after, self.outcome.before, bench.editor, bench.graph, bench.range_of)
        self.outcome.state = self._best(self._wanted((None, proposal) for proposal in ends))
        return self.outcome.state is not before

    def _wanted(self, candidates: Candidates) -> Candidates:
        """Proposals of the sorts of edits that are wanted."""
        graph = self.bench.editor.graph
        for piece, proposal in candidates:
            if self.kinds is None or {kind_of(edit, graph) for edit in proposal} <= self.kinds:
                yield piece, proposal

    def _best(self, candidates: Candidates) -> RepairState:
        """The state with the first proposal that fixes a segment; else with that which leaves the smallest error.

        Pieces are looked at alone first. Where none comes out right, those that came nearer are looked at as a
        whole: one may have made the piece smaller.
        """
        nearer: list[tuple[Guilty | None, Proposal]] = []
        best, repaired = self._first(candidates, self.outcome.state, nearer)
        return best if repaired else self._first(iter(nearer), best, None)[0]

    def _first(
        self, candidates: Candidates, least: RepairState, nearer: list[tuple[Guilty | None, Proposal]] | None
    ) -> tuple[RepairState, bool]:
        """The first proposal that fixes a segment, or that which leaves the smallest error; and whether it fixes it.

        Args:
            candidates: To try.
            least: The smallest so far.
            nearer: Receives those that make their piece better when it's looked at alone, and not right; None: all
                are looked at as a whole.
        """
        found = self.outcome.after
        for piece, proposal in candidates:
            if self._over():
                break
            own = frozenset() if piece is None else reach(piece)
            taken = (*self.outcome.taken, Taken(proposal, "", reach=own))
            candidate = self._made(taken)
            if candidate is None:
                self.journal.add(self._line(taken))
                continue
            if nearer is not None and piece is not None:
                seen = self._alone(candidate, found, [piece]).get(source_of(piece))
                if seen is not None and not seen.right:
                    candidate.remove()
                    if seen.nearer:
                        nearer.append((piece, proposal))
                    else:
                        self.journal.add(self._line(taken))
                    continue
            changed = self._localized(candidate)
            if changed is not None:
                changed = _with_gain(changed, found)
                if fixes(changed.found, found, piece):
                    if piece is None or not self._fails(changed, self.outcome.state, [piece]):
                        return changed, True
                    changed.remove()
                    self.journal.add(self._line(taken))
                    continue
                smaller = len(extent(changed.found)) < len(extent(least.found))
                if smaller and extent(changed.found) < extent(found):
                    if least is not self.outcome.state:
                        least.remove()
                    left = frozenset() if piece is None else computed(piece)
                    least = replace(changed, taken=(*self.outcome.taken, replace(changed.taken[-1], left=left)))
                    continue
                changed.remove()
            self.journal.add(self._line(taken))
        return least, False

    def _fails(self, changed: RepairState, before: RepairState, pieces: Sequence[Guilty]) -> Mapping[str, str]:
        """Pieces that are right on samples, and not on zeros, large or small values: nothing that's called a repair.

        Where only values of what's there were changed, what goes wrong just as it did before is no fault of the edit.

        Args:
            changed: A candidate.
            before: What it was made of.
            pieces: That it fixes.
        """
        look = functools.partial(self._tried, changed.taken)
        found = look(lambda: self.bench.elsewhere(changed.model, changed.found, pieces)) or {}
        edits = [edit for item in changed.taken[len(before.taken) :] for edit in item.edits]
        if found and all(isinstance(edit, VALUES) for edit in edits):
            known = look(lambda: self.bench.elsewhere(before.model, before.found, pieces)) or {}
            found = {source: words for source, words in found.items() if source not in known}
        for words in found.values():
            edited = "; ".join(map(in_words, edits))
            self.failed.setdefault(f"{edited}: right on the samples, but outputs differ on {words}")
        return found

    def _over(self) -> bool:
        """Whether the search shall end: time is over, or the user asked for it."""
        self.outcome.interrupted = self.journal.asked_to_end
        self.outcome.in_time = self.outcome.in_time and time.monotonic() <= self.end
        return self.outcome.interrupted or not self.outcome.in_time

    def _line(self, taken: Sequence[Taken]) -> str:
        """What a candidate that is none is known by: the model, all its edits, and how it's fed."""
        fed = repr((self.bench.target.recipe, self.bench.target.data.count, self.bench.samples))
        return hashlib.sha256(f"{self.model.sha256} {patch_of(taken).digest} {fed}".encode()).hexdigest()

    def _unspent(self, pieces: Iterable[Guilty], found: Found, proposers: Sequence[Proposer]) -> Candidates:
        """Proposals for segments, without those that are known not to help."""
        for piece in pieces:
            spent = self.spent.get(source_of(piece), set())
            for one, proposal in self._proposed_for(piece, found, proposers):
                if Patch(proposal).digest not in spent:
                    yield one, proposal

    def _proposed_for(self, piece: Guilty, found: Found, proposers: Sequence[Proposer]) -> Candidates:
        named = [name for fault in found.result.faults for name in fault.target_layers]
        region = replace(piece.region, constants={}) if self.bench.is_of_any_length else piece.region
        proposed = proposals(region, self.bench.editor, self.bench.range_of, proposers, named)
        return ((piece, proposal) for proposal in proposed)

    def _judged(self, taken: tuple[Taken, ...]) -> RepairState | None:
        """The model with proposals, judged; None when it can't be written, loaded, or run."""
        candidate = self._made(taken)
        return None if candidate is None else self._localized(candidate)

    def _made(self, taken: tuple[Taken, ...]) -> Candidate | None:
        """The model with proposals; None when it can't be written.

        None, too, when an earlier search has found it to be no good.
        """
        self.outcome.tried += 1
        if self._line(taken) in self.journal:
            self.outcome.recalled += 1
            return None
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        made = self._tried(taken, lambda: patch_of(taken).make(self.bench.editor.again(), folder, STEM, whole=False))
        if made is None:
            shutil.rmtree(folder)
        return None if made is None else Candidate(taken, made)

    def _alone(self, candidate: Candidate, found: Found, pieces: Sequence[Guilty]) -> Mapping[str, Alone]:
        """Errors that segments add, of those for which the whole model needn't be run."""
        seen = self._tried(candidate.taken, lambda: self.bench.look_alone(candidate.model, found, pieces))
        return {} if seen is None else seen

    def _localized(self, candidate: Candidate) -> RepairState | None:
        """A candidate, judged; None when it can't be loaded, or run: it's removed then."""
        found = self._tried(candidate.taken, lambda: self.bench.localize(candidate.model))
        if found is None:
            candidate.remove()
        return None if found is None else RepairState(candidate.taken, candidate.model, found)

    def _tried(self, taken: Sequence[Taken], act: Callable[[], _T]) -> _T | None:
        """What an act with a candidate gives; None where it goes wrong, which is noted: then it's no repair."""
        try:
            with self.journal.trying(self._line(taken)):
                return act()
        except NotEditableError as error:
            self.refused.setdefault(str(error))
        # Whatever an editor or a framework says about a candidate, it's no repair.
        except Exception as error:
            if explain_write_error(error, self.folder) is not None:
                raise  # that says nothing about the candidate
            self.failed.setdefault(f"{type(error).__name__}: {error}")
        return None


def _with_gain(state: RepairState, before: Found) -> RepairState:
    """The state, with words for the effect of the last proposal."""
    errors = state.found.result.output_error, before.result.output_error
    gain = "outputs differ by {}, {} before".format(*map(percent, errors))
    *known, last = state.taken
    return replace(state, taken=(*known, replace(last, gain=gain)))

"""Repair many pieces at once: each round tries one proposal for every piece that's still guilty, in one candidate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.localization.located import Guilty
from conrepair.diagnosis.repairs.bench import Alone
from conrepair.diagnosis.repairs.criteria import fixes, guiltiest, introduced, reach, source_of, unplaced
from conrepair.diagnosis.repairs.patch import Patch
from conrepair.diagnosis.repairs.proposals.proposal import Proposal
from conrepair.diagnosis.repairs.state import VALUES, Candidate, RepairState, Taken
from conrepair.ground.runtime.words import percent

_IDLE = 4.0  # rounds behind one another that fix nothing, after which pieces are looked at one by one
_ALONE = 0.125  # what a round costs that looks at pieces alone, where one that looks at the whole costs 1
_REFUSED = 2  # proposals of a sort that can't be made or run, alone, after which others of it aren't tried in a round

Propose = Callable[[Guilty], Iterator[Proposal]]


@dataclass(frozen=True)
class Judging:
    """The functions by which candidates are judged.

    Attributes:
        make: The target with proposals; None where it can't be written.
        alone: What a candidate introduces in pieces, by the source's tensors at their ends; without those of which
            only a look at the whole tells.
        localize: A candidate, judged as a whole; None where it can't be run, and is removed.
        fails: Pieces that a judged candidate fixes on samples, and not on other values, by the source's tensors.
    """

    make: Callable[[tuple[Taken, ...]], Candidate | None]
    alone: Callable[[Candidate, Sequence[Guilty]], Mapping[str, Alone]]
    localize: Callable[[Candidate], RepairState | None]
    fails: Callable[[RepairState, Sequence[Guilty]], Collection[str]] = lambda *_: ()


@dataclass
class _Open:
    """A segment that's still faulty, the proposals left to try for it, and whether any of them made it better."""

    piece: Guilty
    proposals: Iterator[Proposal]
    better: bool = False


class Rounds:
    """A search for repairs of all faulty segments together.

    A piece that is fed the source's values doesn't depend on the others, so one candidate tells of as many
    proposals as there are pieces. What repairs fifty places costs about what one does.

    Attributes:
        spent: Proposals that didn't make their piece any better, as digests, by the piece's tensor in the source.
        hopeless: Pieces, by the same, that no proposal made any better.
    """

    def __init__(self, judging: Judging, propose: Propose, over: Callable[[], bool]) -> None:
        """Prepare.

        Args:
            judging: Of candidates.
            propose: Proposals for a piece, the smallest first.
            over: Whether nothing else shall be tried.
        """
        self._judging, self._propose, self._over = judging, propose, over
        self.spent: dict[str, set[str]] = {}
        self.hopeless: set[str] = set()
        self._refused = Counter[str]()  # proposals of a sort that couldn't be made or run, alone, in this round
        self._passed_over: set[str] = set()  # proposals of those sorts, as digests
        self._operators: Mapping[str, str] = {}  # by node, of the target that's changed
        self._first = True  # in the first round, whose proposals are the smallest

    def run(self, state: RepairState) -> RepairState:
        """Repair what can be fixed of a state's pieces.

        Args:
            state: Has guilty pieces.

        Returns:
            With what helped, written and judged as a whole; the same state where nothing did.
        """
        before = state.found
        self._operators = {node.name: node.op for node in before.graph.nodes}
        waiting = [_Open(piece, self._propose(piece)) for piece in guiltiest(before)]
        taken: list[Taken] = []
        fixed: dict[str, Guilty] = {}
        best = state
        idle = 0.0
        while waiting and idle < _IDLE and not self._over():
            trial: list[tuple[_Open, Proposal]] = []
            for item in waiting:
                if (proposal := next(item.proposals, None)) is not None:
                    trial.append((item, proposal))
                elif not item.better:
                    self.hopeless.add(source_of(item.piece))
            waiting = [item for item, _ in trial]
            if not trial:
                break
            self._refused.clear()
            found = self._tried((*state.taken, *taken), [(item.piece, proposal) for item, proposal in trial], before)
            self._first = False
            idle = 0.0 if found.fixed else idle + (_ALONE if found.alone else 1.0)
            for item, proposal in trial:
                known = self._passed_over | self.spent.get(source_of(item.piece), set())
                item.better |= Patch(proposal).digest not in known
            taken += found.taken
            fixed |= {source_of(piece): piece for piece in found.fixed}
            waiting = [item for item in waiting if source_of(item.piece) not in fixed]
            if found.state is not None:
                best = _instead(best, found.state, state)
        if len(best.taken) == len(state.taken) + len(taken):
            return best
        return self._whole(best, state, taken)

    def _whole(self, best: RepairState, state: RepairState, taken: Sequence[Taken]) -> RepairState:
        """All proposals that helped, in one candidate; the best candidate where they can't be combined."""
        whole = self._judge(self._judging.make((*state.taken, *taken)))
        if whole is None:
            return best
        if len(whole.found.guilty) <= len(best.found.guilty):
            return _instead(best, whole, state)
        whole.remove()
        return best

    def _tried(self, taken: tuple[Taken, ...], trial: Sequence[tuple[Guilty, Proposal]], before: Found) -> _Tried:
        """Judge proposals together: all that can be written; in halves, where together they can't be run."""
        candidate, added, trial = self._written(taken, trial)
        if candidate is None:
            return _Tried()
        seen = self._judging.alone(candidate, [piece for piece, _ in trial])
        alone = [seen[source_of(piece)] for piece, _ in trial if source_of(piece) in seen]
        told = len(alone) == len(trial) and not all(item.right for item in alone)
        if told and not (self._first and _may_be_right_together(trial, alone)):
            candidate.remove()
            return self._alone(zip(added, trial, alone, strict=True))
        changed = self._judge(candidate)
        if changed is None or unplaced(changed.found) > unplaced(before):
            if changed is not None:
                changed.remove()
            if len(trial) == 1:
                self._refuse(*trial[0])
            if len(trial) == 1 or self._over():
                return _Tried()
            middle = len(trial) // 2
            first = self._tried(taken, trial[:middle], before)
            second = self._tried((*taken, *first.taken), trial[middle:], before)
            if first.state is not None:
                first.state.remove()
            return _Tried((*first.taken, *second.taken), (*first.fixed, *second.fixed), second.state)
        helped: list[Taken] = []
        fixed: list[Guilty] = []
        clean = [piece for piece, _ in trial if fixes(changed.found, before, piece)]
        right, fails = set(map(source_of, clean)), self._judging.fails(changed, clean)
        for item, (piece, proposal) in zip(added, trial, strict=True):
            now = introduced(changed.found, piece)
            if source_of(piece) in fails:
                self._spend(piece, proposal)
            elif source_of(piece) in right:
                helped.append(_with_gain(item, now, piece))
                fixed.append(piece)
            elif now is None or now >= piece.judged.introduced:
                self._spend(piece, proposal)
        if len(fixed) == len(added):
            kept = tuple(item for item in helped if item.edits)
            return _Tried(kept, tuple(fixed), RepairState((*taken, *kept), changed.model, changed.found))
        changed.remove()
        return _Tried(tuple(item for item in helped if item.edits), tuple(fixed))

    def _written(
        self, taken: tuple[Taken, ...], trial: Sequence[tuple[Guilty, Proposal]]
    ) -> tuple[Candidate | None, Sequence[Taken], Sequence[tuple[Guilty, Proposal]]]:
        """The target with as many proposals as can be written together, without those like two that can't be."""
        trial = [item for item in trial if not self._is_passed_over(item[1])]
        if not trial:
            return None, (), ()
        added = _without_repeated(taken, trial)
        candidate = self._judging.make((*taken, *(item for item in added if item.edits)))
        if candidate is not None:
            return candidate, added, trial
        if len(trial) == 1:
            self._refuse(*trial[0])
        if len(trial) == 1 or self._over():
            return None, (), ()
        middle = len(trial) // 2
        halves = []
        for half in (trial[:middle], trial[middle:]):
            candidate, _, writable = self._written(taken, half)
            if candidate is not None:
                candidate.remove()
            halves.append(writable)
        together = [*halves[0], *halves[1]]
        # Where each can be written, and both can't, it's the first.
        return self._written(taken, together if len(together) < len(trial) else halves[0])

    def _is_passed_over(self, proposal: Proposal) -> bool:
        if not self._refused or self._refused[self._sort_of(proposal)] < _REFUSED:
            return False
        self._passed_over.add(Patch(proposal).digest)
        return True

    def _alone(self, trial: Iterable[tuple[Taken, tuple[Guilty, Proposal], Alone]]) -> _Tried:
        """What pieces say that were run alone, where some of them aren't right."""
        helped: list[Taken] = []
        fixed: list[Guilty] = []
        for item, (piece, proposal), seen in trial:
            if seen.right:
                helped.append(_with_gain(item, seen.error, piece))
                fixed.append(piece)
            elif not seen.nearer:
                self._spend(piece, proposal)
        return _Tried(tuple(item for item in helped if item.edits), tuple(fixed), alone=True)

    def _judge(self, candidate: Candidate | None) -> RepairState | None:
        return None if candidate is None else self._judging.localize(candidate)

    def _refuse(self, piece: Guilty, proposal: Proposal) -> None:
        self._spend(piece, proposal)
        self._refused[self._sort_of(proposal)] += 1

    def _sort_of(self, proposal: Proposal) -> str:
        """The sort of change that a proposal makes, without its place."""
        words = []
        for edit in proposal:
            words += [type(edit).__name__, self._operators.get(getattr(edit, "node", ""), "")]
            words += [str(getattr(edit, name, "")) for name in ("role", "operator", "input")]
            words += sorted(getattr(edit, "attributes", ()))
            words += [operation.operator for operation in getattr(edit, "operations", ())]
        return " ".join(words)

    def _spend(self, piece: Guilty, proposal: Proposal) -> None:
        self.spent.setdefault(source_of(piece), set()).add(Patch(proposal).digest)


@dataclass(frozen=True)
class _Tried:
    """The result of a round.

    Attributes:
        taken: Proposals that fix a piece.
        fixed: The pieces.
        state: With just those, where that was judged.
        alone: Whether it was enough to look at pieces alone.
    """

    taken: tuple[Taken, ...] = ()
    fixed: tuple[Guilty, ...] = ()
    state: RepairState | None = None
    alone: bool = False


def _may_be_right_together(trial: Sequence[tuple[Guilty, Proposal]], alone: Sequence[Alone]) -> bool:
    """Whether pieces that get other values may be right as a whole though one of them isn't right alone.

    Kernels that are all transposed compute the source's values with exchanged axes: alone, each is fed and judged
    in an order that there's no reason for once all of them are the source's.
    """
    return any(not piece.judged.cut.pair.layout.is_plain for piece, _ in trial) and all(
        seen.right or all(isinstance(edit, VALUES) for edit in proposal)
        for (_, proposal), seen in zip(trial, alone, strict=True)
    )


def _without_repeated(taken: Sequence[Taken], trial: Sequence[tuple[Guilty, Proposal]]) -> list[Taken]:
    """Proposals for pieces, each edit once: pieces may have layers, or weights, in common."""
    seen = {Patch((edit,)).digest for item in taken for edit in item.edits}
    added = []
    for piece, proposal in trial:
        edits = []
        for edit in proposal:
            if (digest := Patch((edit,)).digest) not in seen:
                seen.add(digest)
                edits.append(edit)
        added.append(Taken(tuple(edits), "", reach=reach(piece)))
    return added


def _with_gain(item: Taken, now: float | None, piece: Guilty) -> Taken:
    after = "an error that can't be measured alone" if now is None else f"an error of {percent(now)}"
    gain = f"computing `{source_of(piece)}` adds {after}, {percent(piece.judged.introduced)} before"
    return Taken(item.edits, gain, item.left, item.reach)


def _instead(best: RepairState, other: RepairState, first: RepairState) -> RepairState:
    """The other one; the file of the best so far isn't needed any more."""
    if best is not first:
        best.remove()
    return other

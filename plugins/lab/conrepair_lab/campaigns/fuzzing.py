"""A campaign: networks are tried by systems, suspicions are reduced, and findings written, a folder each."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import json
import math
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.application.engine.place import executor
from conrepair.application.engine.problems import problem_of_failure
from conrepair.application.engine.side_by_side import run_side_by_side
from conrepair.application.report.encode import encode
from conrepair.ground.runtime.files.scratch import scratch_folder
from conrepair.ground.runtime.files.whole import make_folder, storage_error
from conrepair.ground.runtime.processes.executor import Executor
from conrepair.ground.runtime.processes.workers import ENDED, Failure, Job, Outcome
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.ground.runtime.typed import typed
from conrepair_lab.campaigns.fuzz_database import DATABASE, Database, Suspect
from conrepair_lab.campaigns.fuzz_jobs import CASE, TOLD, Made
from conrepair_lab.campaigns.fuzz_networks import FuzzNetwork, Source, dealt, functions_of, rounds
from conrepair_lab.campaigns.generate_functions import functions_at
from conrepair_lab.campaigns.generate_jobs import AT
from conrepair_lab.campaigns.network_folder import text_of
from conrepair_lab.campaigns.rechecking import fuzz_job
from conrepair_lab.campaigns.screening import Screening, suspicion_of
from conrepair_lab.campaigns.screening import told as told_of_screening
from conrepair_lab.cases.case import read
from conrepair_lab.fuzz.finding import Finding
from conrepair_lab.fuzz.known import Known
from conrepair_lab.fuzz.looking import SUSPECT, UNJUDGED, Looked
from conrepair_lab.fuzz.screen.screening import PAIRS, SINGLE
from conrepair_lab.fuzz.suspicion import OF_RUNS, REFUSED
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.report.fuzz.folder import REPRODUCE, write_finding
from conrepair_lab.report.fuzz.summary import Summary
from conrepair_lab.systems.registry import entry

FINDINGS = "findings"
"""Folder of what was found."""

_WORK = ".fuzzing-"
_BLOCK = 10
_OURS = {"storage", "changed", "library", "device"}  # failures that no network is to blame for
_EVER = 1 << 40  # a turn behind all others
_SLICE = 5.0  # seconds of screening before suspicions are looked into
_ANYWAY = 5
_MOST_ALIKE, _MOST_COVERED = 4, 1  # suspicions of a sort that are looked into in a round; where one is known already
DOUBLE, FILTERED = "double", "filtered"


@dataclass(frozen=True)
class _Within:
    """What patterns are screened with."""

    screening: Screening
    database: Database
    workers: Executor
    work: Path
    told: Callable[[], None]


class _TimeIsUpError(Exception):
    """Nothing more is to be begun."""


class Campaign:
    """A campaign in a folder, which the same options continue.

    Args:
        asked: What's wanted.
        root: Its folder.
        own: Folders of a person's networks, and where each comes from.
        known: Findings that are known.
        display: Shows progress.
        source: Of its networks.

    Attributes:
        findings: By key.
    """

    def __init__(
        self,
        asked: Fuzz,
        root: Path,
        own: Sequence[tuple[Path, str]],
        known: Known,
        display: ProgressDisplay,
        source: Source = rounds,
    ) -> None:
        self._asked, self._root, self._own, self._known, self._display = asked, root, own, known, display
        self._source = source
        self._functions = functions_at(functions_of(asked))
        self._begun = time.monotonic()
        self._networks: dict[str, FuzzNetwork] = {}
        self.findings: dict[str, Finding] = {}
        self._summary = Summary((), {}, {}, {}, {}, {}, asked.seed, over=False)

    @property
    def summary(self) -> Summary:
        """What came of it so far."""
        findings = sorted(self.findings.values(), key=lambda item: (bool(item.known), item.name))
        return dataclasses.replace(self._summary, findings=tuple(findings))

    def run(self, told: Callable[[], None] = lambda: None) -> None:
        """Go through all networks, or until time is up.

        Args:
            told: Called behind each round: what came of the campaign so far can be read.

        Raises:
            ConrepairError: if the folder is another campaign's, or can't be written.
        """
        for name in self._asked.entries:
            entry(name)  # says which there are, before anything is done
        with storage_error(self._root):
            make_folder(self._root)
        identity = self._asked.identity | {"own": [source for _, source in self._own]}
        with Database(self._root / DATABASE, identity) as database:
            self._read_findings(database)
            with (
                contextlib.suppress(_TimeIsUpError),
                scratch_folder(self._root, _WORK) as work,
                executor(self._asked.workers, folders=(work,)) as workers,
            ):
                screening = Screening(self._asked, self._root, database, self._display)
                within = _Within(screening, database, workers, work, told)
                self._screen(within, SINGLE, database.turns(before=0))
                turn = 0
                for turn, networks in enumerate(
                    self._source(self._asked, self._root, self._own, self._display, (workers, work))
                ):
                    begun = time.monotonic()
                    self._networks |= {item.name: item for item in networks}
                    for alone in (True, False):  # what is refused alone isn't dealt among others
                        self._try([item for item in networks if item.alone == alone], database, workers, work)
                    self._look_into(turn, database, workers, work)
                    self._count(database)
                    told()
                    self._screen(within, PAIRS, itertools.repeat(turn), time.monotonic() - begun)
                turns = itertools.count(turn + 1)
                self._screen(within, PAIRS, turns)
                before = -1
                while before < len(self.findings):  # as long as what was put off says something new
                    before = len(self.findings)
                    self._look_into(next(turns), database, workers, work)
                self._summary = dataclasses.replace(self._summary, over=True)
            self._count(database)

    def _check_time(self) -> None:
        if self._asked.seconds is not None and time.monotonic() - self._begun > self._asked.seconds:
            raise _TimeIsUpError

    # Screening

    def _screen(self, within: _Within, step: int, turns: Iterator[int], seconds: float = math.inf) -> None:
        """Screen patterns, and look into what's suspect as it comes: for half of the time each.

        Args:
            within: What it's done with.
            step: The last that's done.
            turns: Of looking.
            seconds: For all of it.
        """
        begun, ahead = time.monotonic(), 0.0  # seconds that looking took more than screening
        self._networks |= within.screening.networks()
        while within.screening.waits(step) and (since := time.monotonic()) - begun < seconds:
            ends = since + max(ahead, _SLICE)
            within.screening.run(within.workers, within.work, step, ends, self._check_time)
            self._networks |= within.screening.networks()
            ahead -= (looks := time.monotonic()) - since
            self._look_into(next(turns), within.database, within.workers, within.work, -ahead)
            ahead += time.monotonic() - looks
            self._count(within.database)
            within.told()

    # Trying

    def _try(self, networks: Sequence[FuzzNetwork], database: Database, workers: Executor, work: Path) -> None:
        blocks = []
        for name, share in dealt(self._asked, networks).items():
            tried, refused = database.tried(name), self._refused(name, database)
            todo = [item for item in share if item.name not in tried and self._worth(item, refused)]
            blocks += [(name, todo[begin : begin + _BLOCK]) for begin in range(0, len(todo), _BLOCK)]
        left: dict[Path, tuple[str, list[FuzzNetwork]]] = {}
        numbers = itertools.count()

        def job(name: str, share: list[FuzzNetwork]) -> Job:
            place, limit = work / f"tries-{next(numbers)}", self._asked.network_seconds
            left[place] = name, share
            payload = {"networks": [item.folder for item in share], "seconds": limit}
            payload |= {"varied": self._asked.varied, "special": self._asked.special, "slower": self._asked.slower}
            return fuzz_job("fuzz_try", name, payload, place, len(share) * limit)

        def ended(done: Job, outcome: Outcome) -> Job | None:
            name, share = left.pop(done.folder)
            told = _told(done.folder, share)
            if isinstance(outcome, Failure):
                told.append((share[len(told)].name, _ended(done, outcome, len(told))))
            database.add_tries(name, told)
            stage.advance(steps=len(told))
            shutil.rmtree(done.folder, ignore_errors=True)
            rest = share[len(told) :]
            return job(name, rest) if rest else None

        with self._display.stage("try", sum(len(share) for _, share in blocks)) as stage:
            run_side_by_side(workers, (job(*item) for item in blocks), ended, self._check_time)

    def _refused(self, name: str, database: Database) -> set[str]:
        """Operators that a system has refused whenever they stood alone, more than once."""
        verdicts = database.tried(name)
        alone = [item for item in self._networks.values() if item.alone and item.name in verdicts]
        counts = {verdict: collections.Counter[str]() for verdict in (True, False)}
        for item in alone:
            counts[verdicts[item.name] == REFUSED].update(item.operators)
        return {op for op, times in counts[True].items() if times > 1 and op not in counts[False]}

    def _worth(self, network: FuzzNetwork, refused: set[str]) -> bool:
        """Whether a network is tried: some are that have a refused operator, for it may be taken otherwise."""
        return network.alone or not network.place % _ANYWAY or refused.isdisjoint(network.operators)

    # Looking into

    def _look_into(
        self, turn: int, database: Database, workers: Executor, work: Path, seconds: float = math.inf
    ) -> None:
        ends = time.monotonic() + seconds
        chosen = self._chosen(turn, database)
        jobs, whose = [], {}
        for place, suspect in enumerate(chosen):
            folder = work / f"reduction-{place}-{suspect.network.replace('/', '-')}"
            whose[folder] = suspect
            seconds, longest = self._asked.reduction_seconds, self._asked.network_seconds
            payload = {
                "network": self._networks[suspect.network].folder,
                "suspicion": suspect.suspicion,
                "seconds": seconds,
                "longest": longest,
                "others": self._others(suspect.entry),
                "apart": False,
                "varied": self._asked.varied if self._networks[suspect.network].causes is None else 0.0,
                "odd": suspect.odd,
            }
            jobs.append(fuzz_job("fuzz_reduce", suspect.entry, payload, folder, longest + 4 * seconds))
        done: dict[Path, Made] = {}

        def ended(job: Job, outcome: Outcome) -> Job | None:
            if not isinstance(outcome, Failure):
                done[job.folder] = typed(Made, outcome.value)
            elif outcome.kind in _OURS:
                raise problem_of_failure(outcome).as_error("fuzz_reduce")
            elif outcome.kind in ENDED and not job.payload["apart"]:  # a smaller case ends its process
                shutil.rmtree(job.folder)
                make_folder(job.folder)
                return dataclasses.replace(job, payload={**job.payload, "apart": True})
            else:
                done[job.folder] = Made("lost", str(outcome))
            stage.advance()
            return None

        with self._display.stage("reduce", len(jobs)) as stage:
            try:
                timely = itertools.takewhile(lambda _: time.monotonic() < ends, jobs)
                run_side_by_side(workers, timely, ended, self._check_time)
            finally:
                # The smallest ones first, else in their order, so that the same one of doubles is kept.
                found = [folder for folder in whose if folder in done]
                for folder in sorted(found, key=lambda folder: _nodes(done[folder])):
                    self._keep(whose[folder], done[folder], folder, database)

    def _others(self, name: str) -> list[str]:
        """Settings of the same system that run in the same process, in the same environment."""
        asked = entry(name)
        variables = asked.runs.environment(asked.chosen)
        return [
            other
            for other in self._asked.entries
            if other != asked.name
            and (entry(other).system, entry(other).within) == (asked.system, asked.within)
            and asked.runs.environment(entry(other).chosen) == variables
        ]

    def _chosen(self, turn: int, database: Database) -> list[Suspect]:
        """Some suspicions of each sort, on the smallest networks; those that may be of what's found come last.

        What the same system's plain setting isn't suspect of is a sort of its own, since kernels' faults don't hide
        it, and so is what an operator shows that stands alone. All others are put off until the next turn.
        """
        sorts: dict[tuple[Any, ...], dict[tuple[str, ...], Suspect]] = {}
        waiting, nodes = [], {}
        for suspect in database.suspects(turn):
            if suspect.network not in self._networks:
                continue
            operators = self._networks[suspect.network].operators
            nodes[suspect] = sum(operators.values())
            one, asked = suspect.suspicion, entry(suspect.entry)
            thrown = one.kind == "exception"
            words = (one.words_without(operators), one.place) if thrown else ()
            only, alone = suspect.plainly is False, next(iter(operators)) if nodes[suspect] == 1 else ""
            causes = self._networks[suspect.network].causes  # of one that was screened
            key = asked.system, asked.release, only, alone or causes, one.kind, one.stage, one.error, *words
            sort = sorts.setdefault(key, {})
            seen = suspect.network, one.output, "" if thrown else one.message
            if seen in sort or (thrown and self._said(suspect, operators)):  # by another setting, or network
                waiting.append(suspect)
            else:
                sort[seen] = suspect
        chosen = []
        for (_, _, only, alone, *_), sort in sorts.items():
            suspects = sorted(sort.values(), key=nodes.__getitem__)
            covered = [item for item in suspects if self._covered(item, only=only)]
            fresh = [item for item in suspects if item not in covered]
            most = _MOST_ALIKE if alone in {"", None} else 1
            taken = fresh[:most] + covered[: _MOST_COVERED if len(fresh) < most else 0]
            chosen += taken
            waiting += [item for item in suspects if item not in taken]
        database.put_off(waiting, turn)
        return sorted(chosen, key=lambda item: item.odd > 0)

    def _said(self, suspect: Suspect, operators: Collection[str]) -> bool:
        """Whether a finding is an exception of the same words, from the same place: it's a double."""
        asked, one = entry(suspect.entry), suspect.suspicion
        return any(
            item.suspicion.thrown(both := {*operators, *item.operators}) == one.thrown(both)
            for item in self.findings.values()
            if (item.system, item.release, item.suspicion.kind) == (asked.system, asked.release, one.kind)
        )

    def _covered(self, suspect: Suspect, *, only: bool) -> bool:
        """Whether its network has all operators of a finding of the same sort: it's likely a double."""
        there = set(self._networks[suspect.network].operators)
        return any(
            item.system == entry(suspect.entry).system
            and item.suspicion.kind == suspect.suspicion.kind
            and set(item.operators) <= there
            and not (only and item.cause.plainly)
            for item in self.findings.values()
        )

    # Findings

    def _keep(self, suspect: Suspect, made: Made, folder: Path, database: Database) -> None:
        if made.finding is None:
            database.add_reduction(suspect, made.verdict, encode(made))
            return
        finding = dataclasses.replace(made.finding, source=self._networks[suspect.network].source)
        finding = dataclasses.replace(finding, known=self._known.of(finding))
        told = encode(dataclasses.replace(made, finding=finding))
        if not self._functions.keeps(finding):
            database.add_reduction(suspect, FILTERED, told, finding.key)
            return
        double = self._double(finding)
        if double is None:
            write_finding(finding, read(folder / CASE), text_of(folder / REPRODUCE), self._root / FINDINGS)
            self.findings[finding.key] = finding
        database.add_reduction(suspect, SUSPECT if double is None else DOUBLE, told, (double or finding).key)

    def _double(self, finding: Finding) -> Finding | None:
        """A finding of the same cause: of the same key, or whose operators are among this one's, which hide them."""
        if finding.key in self.findings:
            return self.findings[finding.key]
        return next(
            (
                other
                for other in self.findings.values()
                if (other.system, other.suspicion.error) == (finding.system, finding.suspicion.error)
                and _alike(other.suspicion.kind, finding.suspicion.kind)
                and other.suspicion.kind != "exception"
                and (other.cause.plainly, other.cause.causes) == (finding.cause.plainly, finding.cause.causes)
                and set(other.operators) < set(finding.operators)
            ),
            None,
        )

    def _read_findings(self, database: Database) -> None:
        """Findings of earlier runs, as the database has them."""
        for _, _, verdict, told, cause in database.reductions():
            if verdict == SUSPECT:
                finding = typed(Finding, told["finding"])
                self.findings[cause] = dataclasses.replace(finding, known=self._known.of(finding))

    def _count(self, database: Database) -> None:
        """What the database has of it so far."""
        reductions = list(database.reductions())
        screened, never = told_of_screening(database, self._asked.entries)
        counts = collections.Counter(cause for _, _, verdict, _, cause in reductions if verdict in {SUSPECT, DOUBLE})
        self._summary = dataclasses.replace(
            self._summary,
            counts=database.counts(),
            screened=screened,
            never=never,
            waiting=len(database.suspects(_EVER)),
            seconds=database.seconds(),
            refusals=database.refusals(),
            seen_in={item.name: counts[key] for key, item in self.findings.items()},
            suspicions=dict(collections.Counter(verdict for _, _, verdict, _, _ in reductions)),
        )


def _nodes(made: Made) -> int:
    return 0 if made.finding is None else len(made.finding.operators)


def _alike(one: str, two: str) -> bool:
    return one == two or {one, two} <= OF_RUNS


def _told(folder: Path, share: Sequence[FuzzNetwork]) -> list[tuple[str, Looked]]:
    """What a job said of its networks so far; a line that it was writing when it ended isn't there."""
    path = folder / TOLD
    lines = text_of(path).split("\n")[:-1] if path.is_file() else []
    return [(item.name, typed(Looked, json.loads(line))) for item, line in zip(share, lines, strict=False)]


def _ended(job: Job, failure: Failure, place: int) -> Looked:
    """What a network did that ended its worker.

    Raises:
        ConrepairError: if no network is to blame.
    """
    at = json.loads(text_of(job.folder / AT)) if (job.folder / AT).is_file() else {}
    if failure.kind not in ENDED or at.get("place") != place:
        raise problem_of_failure(failure).as_error(job.function)
    if at["judging"]:
        return Looked(UNJUDGED, None, f"judging it ended its process: {failure}")
    return Looked(SUSPECT, suspicion_of(failure), odd=at["odd"])

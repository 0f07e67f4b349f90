"""The screen of a campaign: all small changes of all patterns; what's suspect are networks of the campaign."""

from __future__ import annotations

import itertools
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from conrepair.application.engine.problems import problem_of_failure
from conrepair.application.engine.side_by_side import run_side_by_side
from conrepair.formats.onnx.load.optimizers import OPTIMIZERS
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.runtime.files.whole import make_folder
from conrepair.ground.runtime.processes.executor import Executor
from conrepair.ground.runtime.processes.workers import ENDED, Failure, Job, Outcome
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.ground.runtime.typed import typed
from conrepair_lab.campaigns.fuzz_database import Database
from conrepair_lab.campaigns.fuzz_networks import FuzzNetwork
from conrepair_lab.campaigns.generate_jobs import AT
from conrepair_lab.campaigns.network_folder import read_about, text_of
from conrepair_lab.campaigns.rechecking import fuzz_job
from conrepair_lab.campaigns.screening_jobs import LOOKED, Screened
from conrepair_lab.fuzz.apart import PROCESS
from conrepair_lab.fuzz.looking import Looked
from conrepair_lab.fuzz.screen.screening import FURTHER, PAIRS, SINGLE
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.generate.patterns.pattern import patterns
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.variants import variants
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.systems.registry import entry

_FOLDER = "screened"
_SECONDS = 600.0  # that a pattern may take, besides its networks' own limit
_ALARM = "SIGALRM"


def suspicion_of(failure: Failure) -> Suspicion:
    """What a network did that ended its worker.

    Args:
        failure: Of the worker.
    """
    if failure.error_type == _ALARM or failure.kind == "timeout":
        return Suspicion("hang", PROCESS, message="it never ends")
    kind = "memory" if failure.kind == "memory" else "crash"
    return Suspicion(kind, PROCESS, failure.error_type, failure.message)


class Screening:
    """Screens patterns by the settings of a campaign that optimize.

    Args:
        asked: The campaign.
        root: Its folder.
        database: Of it.
        display: Shows progress.
    """

    def __init__(self, asked: Fuzz, root: Path, database: Database, display: ProgressDisplay) -> None:
        self._asked, self._database, self._display = asked, database, display
        self._folder, self._numbers = root / _FOLDER, itertools.count()
        done = set(database.screened())
        wished = asked.wishes
        names = [name for name in patterns() if wished.woven and wished.patterns.get(name, 1) and not asked.models]
        self._todo = [
            item
            for step in (SINGLE, FURTHER, PAIRS)[: asked.screen]
            for name in sorted(names, key=self._nodes)  # what's seen in small ones is soon reduced
            for item in ((other, name, step) for other in asked.entries if entry(other) != entry(other).plain)
            if item not in done
        ]

    def _nodes(self, name: str) -> int:
        """Of a pattern's usual variant."""
        wishes = self._asked.wishes
        first = next(variants(patterns()[name], wishes.narrowed(Support()), wishes.opset, wishes.most), None)
        return 0 if first is None else len(first.nodes)

    def networks(self) -> dict[str, FuzzNetwork]:
        """Suspects so far, by name."""
        found = {}
        for place, folder in enumerate(sorted(self._folder.iterdir()) if self._folder.is_dir() else ()):
            about, name = read_about(folder), f"{_FOLDER}/{folder.name}"
            causes = tuple(about.get("causes", ()))
            found[name] = FuzzNetwork(name, place, folder, False, about.get("source", ""), causes=causes)
        return found

    def waits(self, step: int) -> bool:
        """Whether patterns are left.

        Args:
            step: The last that counts.
        """
        return any(item[2] <= step for item in self._todo)

    def run(self, workers: Executor, work: Path, step: int, ends: float, check: Callable[[], None]) -> None:
        """Screen some patterns.

        Args:
            workers: Where.
            work: A folder that they write in.
            step: The last that counts.
            ends: Time behind which none is begun.
            check: Called some ten times a second.
        """
        running: dict[Path, tuple[tuple[str, str, int], Screened]] = {}

        def job(item: tuple[str, str, int], before: Screened, ended: Mapping[str, Suspicion]) -> Job:
            name, pattern, number = item
            place, limit = work / f"screen-{next(self._numbers)}", self._asked.network_seconds
            running[place] = item, before
            payload = {"pattern": pattern, "step": number, "wishes": self._asked.wishes, "seconds": limit}
            share = entry(name).runs.cost(entry(name).chosen)
            payload |= {"share": share, "ended": ended, "unusual": self._asked.special}
            return fuzz_job("fuzz_screen", name, payload, place, limit + _SECONDS)

        def jobs() -> Iterator[Job]:
            while self.waits(step) and time.monotonic() < ends:
                yield job(self._todo.pop(0), Screened(), {})

        def done(last: Job, outcome: Outcome) -> Job | None:
            item, before = running.pop(last.folder)
            self._keep(item[0], last.folder)
            ended: Mapping[str, Suspicion] = last.payload["ended"]
            at = text_of(last.folder / AT).split() if (last.folder / AT).is_file() else []
            shutil.rmtree(last.folder, ignore_errors=True)
            if isinstance(outcome, Failure):
                if outcome.kind not in ENDED:
                    raise problem_of_failure(outcome).as_error("fuzz_screen")
                before += Screened(0, int(at[1])) if at else Screened()
                if at and at[0] not in ended and outcome.kind != "timeout":  # of the whole pattern
                    return job(item, before, {**ended, at[0]: suspicion_of(outcome)})
                found = before  # it isn't a network that ends it
            else:
                found = before + typed(Screened, outcome.value)
            self._database.add_screened(*item, found)
            stage.advance()
            return None

        with self._display.stage("screen", sum(item[2] <= step for item in self._todo)) as stage:
            run_side_by_side(workers, jobs(), done, check)

    def _keep(self, name: str, folder: Path) -> None:
        """Make what a job left networks of the campaign."""
        make_folder(self._folder)
        found = []
        for path in sorted(folder.glob(f"*/{LOOKED}")):
            looked = typed(Looked, value_of(read_json_text(path)))
            there = self._folder / path.parent.name
            if not there.is_dir():
                path.parent.rename(there)
            found.append((f"{_FOLDER}/{there.name}", looked))
        self._database.add_tries(name, found)


def told(database: Database, entries: tuple[str, ...]) -> tuple[dict[str, int], dict[str, tuple[str, ...]]]:
    """How many networks were computed and compared, by system and setting, and which optimizations never fired.

    Args:
        database: Of a campaign.
        entries: Its settings.
    """
    counts, fired = Counter[str](), {name: Counter[str]() for name in entries}
    screened = database.screened()
    for (name, _, _), item in screened.items():
        counts[name] += item["computed"]
        fired[name].update(item["fired"])
    whole = [name for name in entries if len(patterns()) == sum(key[::2] == (name, SINGLE) for key in screened)]
    never = {name: tuple(sorted(set(OPTIMIZERS) - set(fired[name]))) for name in whole if fired[name]}
    return dict(counts), never

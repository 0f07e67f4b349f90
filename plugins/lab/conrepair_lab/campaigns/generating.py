"""Generate networks into a folder: blocks of them side by side in workers, whichever of them ends one."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from conrepair.application.engine.job_table import reach_of
from conrepair.application.engine.place import executor
from conrepair.application.engine.problems import problem_of_failure
from conrepair.application.engine.side_by_side import run_side_by_side
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.scratch import scratch_folder
from conrepair.ground.runtime.files.whole import canonical_json, make_folder, storage_error, write_json, write_text
from conrepair.ground.runtime.processes.executor import Executor
from conrepair.ground.runtime.processes.workers import Failure, Job, Outcome
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns.generate_functions import FunctionFile, function_files
from conrepair_lab.campaigns.generate_jobs import AT, TRYING
from conrepair_lab.campaigns.generate_material import MaterialFiles, material_files
from conrepair_lab.campaigns.narrowing import element_types, support_of
from conrepair_lab.campaigns.network_folder import WORK, NetworkFolder, name_of, read_about, text_of
from conrepair_lab.generate.checks import check_wishes
from conrepair_lab.generate.generated import ABOUT, BLOCK, versions
from conrepair_lab.generate.learned.instances import Instance, text_of_instances
from conrepair_lab.generate.narrowing.table import Acceptance
from conrepair_lab.generate.wishes import Wishes
from conrepair_lab.options.generate import Generate

_KIND = "generate"
_START = 120.0  # more seconds for a block's job than for its networks, each of which has a limit of its own
_OURS = {"storage", "changed", "library", "refused"}  # failures that no network is to blame for
_ALARM = "SIGALRM"


@dataclass(frozen=True)
class GenerationRequest:
    """What networks there should be, and how long it may take.

    Attributes:
        wishes: What they should be like.
        count: How many.
        seed: Of all that's drawn.
        formats: Others that they're converted to.
        material: Models that they're made of.
        functions: The user's own, which are run.
        support: Name of a target, of which only what it takes is made; None for what ONNX Runtime takes.
        workers: Blocks side by side.
        timeout: Seconds for each network.
        seconds: After which none is begun any more; None for no such limit.
        memory_gb: That a worker may hold; None for a share of what's free.
    """

    wishes: Wishes
    count: int
    seed: int = 0
    formats: tuple[str, ...] = ()
    material: MaterialFiles = field(default_factory=MaterialFiles)
    functions: tuple[FunctionFile, ...] = ()
    support: str | None = None
    workers: int = 2
    timeout: float = 60.0
    seconds: float | None = None
    memory_gb: float | None = None


def request_of(options: Generate, base: Path, *, memory_gb: float | None = None) -> GenerationRequest:
    """What somebody asks for, with the models and functions that he names.

    Args:
        options: Of the verb.
        base: Folder that relative paths start from.
        memory_gb: That a worker may hold.

    Raises:
        UsageError: if a model or function isn't there.
        ModelLoadError: if the functions may not be run.
    """
    return GenerationRequest(
        wishes=options.wishes,
        count=options.count,
        seed=options.seed,
        formats=tuple(options.to),
        material=material_files(options.learn, options.grown_from, base),
        functions=function_files(options.functions, base, trust=options.trust),
        support=options.support,
        workers=options.workers,
        timeout=options.network_seconds,
        seconds=options.seconds,
        memory_gb=memory_gb,
    )


class _TimeIsUpError(Exception):
    """No further network is to be begun."""


def generate(
    asked: GenerationRequest,
    root: Path,
    display: ProgressDisplay,
    *,
    force: bool = False,
    within: tuple[Executor, Path] | None = None,
) -> dict[str, Any]:
    """Generate networks; those that are there already are kept.

    Args:
        asked: What.
        root: Their folder.
        display: Shows progress.
        force: Whether networks that were made with other options are replaced.
        within: Workers that are there already, and a folder on the same disk that they write in.

    Returns:
        The summary, as it's written.

    Raises:
        UsageError: if what's asked for can't be, or the folder has something else.
        StorageError: if it can't be written.
    """
    asked.material.check(asked.wishes)
    begun, instances = time.perf_counter(), asked.material.instances(display)
    check_wishes(asked.wishes, frozenset(item.op for item in instances))
    taken = _taken(asked, display)
    own = {"functions": [item.identity for item in asked.functions]} if asked.functions else {}
    identity = {
        "seed": asked.seed,
        "wishes": asdict(asked.wishes) | asked.material.identity | own,
        "versions": {**versions(), **_named(taken, asked)},
    }
    folder = NetworkFolder(
        root, identity, [op for op in asked.wishes.names if not taken or taken[op].taken], force=force
    )
    folder.write(asked.count, 0.0)
    making = _Making(asked, folder, taken, instances)
    try:
        with contextlib.suppress(_TimeIsUpError), storage_error(root), _place(asked, root, within) as (workers, work):
            if making.missing():
                making.ask(work, display)
            done = asked.count - sum(map(len, making.missing().values()))
            with display.stage(_KIND, asked.count, done=done) as stage:
                making.run(workers, work, stage.advance, begun)
            if asked.formats:
                making.convert(workers, work, display, begun)
    finally:
        summary = folder.write(asked.count, time.perf_counter() - begun)
    return summary


@contextlib.contextmanager
def _place(
    asked: GenerationRequest, root: Path, within: tuple[Executor, Path] | None
) -> Iterator[tuple[Executor, Path]]:
    """Workers, and a folder that they write in."""
    if within is not None:
        workers, parent = within
        with scratch_folder(parent, WORK) as work:
            yield workers, work
        return
    with (
        scratch_folder(root, WORK) as work,
        executor(asked.workers, memory_gb=asked.memory_gb, folders=(work,)) as workers,
    ):
        yield workers, work


def _taken(asked: GenerationRequest, display: ProgressDisplay) -> dict[str, Acceptance]:
    """What the target takes that was named, by operator.

    Raises:
        UsageError: if that's nothing.
    """
    if asked.support is None:
        return {}
    found = support_of(asked.support, asked.wishes.names, asked.wishes.opset, display=display)
    if not any(item.taken for item in found.values()):
        raise UsageError(f"no operator is left: {asked.support} takes none of {', '.join(found)}.")
    return found


def _named(taken: Mapping[str, Acceptance], asked: GenerationRequest) -> dict[str, str]:
    """What identifies that, beside versions."""
    if asked.support is None:
        return {}
    text = canonical_json({op: dataclasses.asdict(item) for op, item in taken.items()})
    return {f"taken by {asked.support}": hashlib.sha256(text.encode()).hexdigest()[:16]}


class _Making:
    """Makes the networks that aren't there yet."""

    def __init__(
        self,
        asked: GenerationRequest,
        folder: NetworkFolder,
        taken: Mapping[str, Acceptance],
        instances: Sequence[Instance],
    ) -> None:
        self._asked, self._folder, self._taken = asked, folder, taken
        self._without: dict[int, list[int]] = {}
        self._known, self._instances, self._learned = Path(), instances, Path()

    def missing(self) -> dict[int, list[int]]:
        """By block, numbers of networks that there are none of."""
        blocks = range(-(-self._asked.count // BLOCK))
        return {block: wanted for block in blocks if (wanted := self._missing_of(block))}

    def _missing_of(self, block: int) -> list[int]:
        made, refused = self._folder.made, self._folder.refused
        places = range(block * BLOCK, min((block + 1) * BLOCK, self._asked.count))
        return [index for index in places if index not in made and index not in refused]

    def convert(self, workers: Executor, work: Path, display: ProgressDisplay, begun: float) -> None:
        """Convert them all, as `run` makes them."""
        from conrepair_lab.campaigns.network_conversions import convert_networks, missing_conversions

        formats, timeout = self._asked.formats, self._asked.timeout
        with display.stage("convert", len(missing_conversions(self._folder, formats))) as stage:
            convert_networks(
                self._folder, formats, workers, work, timeout, lambda: self._check_time(begun), stage.advance
            )

    def _check_time(self, begun: float) -> None:
        if self._asked.seconds is not None and time.perf_counter() - begun > self._asked.seconds:
            raise _TimeIsUpError

    def ask(self, work: Path, display: ProgressDisplay) -> None:
        """Ask ONNX Runtime which element types it takes; what it said before is in the user's cache.

        Raises:
            ConrepairError: if that can't be done.
        """
        with display.stage("ask ONNX Runtime", 1) as stage:
            types = element_types(self._asked.wishes)
            stage.advance()
        self._known = work / "known.json"
        taken = {op: dataclasses.asdict(item) for op, item in self._taken.items()}
        write_json(self._known, {"types": types, "taken": taken})
        self._learned = work / "learned.json"
        write_text(self._learned, text_of_instances(self._instances))

    def run(self, workers: Executor, work: Path, advance: Any, begun: float) -> None:
        """Make them all.

        Args:
            workers: Where.
            work: Folder that workers write in.
            advance: Told what was made.
            begun: When.

        Raises:
            _TimeIsUpError: when no further one is to be begun.
        """
        open_folders: set[Path] = set()

        def jobs() -> Iterator[Job]:
            for block, wanted in self.missing().items():
                place = work / f"block-{block}"
                make_folder(place)
                open_folders.add(place)
                yield self._job(place, block, wanted)

        def take() -> None:
            for place in open_folders:
                if moved := self._folder.take(place):
                    advance(steps=moved)

        def meanwhile() -> None:
            take()
            self._check_time(begun)

        def ended(job: Job, outcome: Outcome) -> Job | None:
            take()
            block = job.payload["block"]
            if isinstance(outcome, Failure):
                self._blame(block, job.folder, outcome)
                take()
            wanted = self._missing_of(block)
            if isinstance(outcome, Failure) and wanted:
                return self._job(job.folder, block, wanted)
            open_folders.discard(job.folder)
            shutil.rmtree(job.folder, ignore_errors=True)
            return None

        try:
            run_side_by_side(workers, jobs(), ended, meanwhile)
        finally:
            take()

    def _job(self, place: Path, block: int, wanted: list[int]) -> Job:
        payload = {
            "wishes": self._asked.wishes,
            "seed": self._asked.seed,
            "block": block,
            "wanted": wanted,
            "without": self._without.get(block, []),
            "seconds": self._asked.timeout,
            "known": str(self._known),
            "models": self._asked.material.models,
            "instances": str(self._learned),
            "functions": self._asked.functions,
        }
        reach = reach_of(_KIND, program=bool(self._asked.functions))
        return Job(_KIND, payload, place, frozenset({"onnx"}), BLOCK * self._asked.timeout + _START, reach)

    def _blame(self, block: int, place: Path, failure: Failure) -> None:
        """Say of the network that a worker ended with that it did so, and keep it where it's there.

        Raises:
            ConrepairError: if no network is to blame.
        """
        at = place / AT
        if failure.kind in _OURS or not at.is_file():
            raise problem_of_failure(failure).as_error(_KIND)
        index = int(text_of(at))
        at.unlink()
        words = f"{failure.error_type}: {failure.message}"
        if failure.error_type == _ALARM:
            words = f"the time limit of {self._asked.timeout:g} s"
        trying = place / TRYING
        about = read_about(trying)
        if about.get("index") == index:
            verdict = "timeout" if failure.error_type == _ALARM else "crashed"
            write_json(trying / ABOUT, about | {"optimized": {"verdict": verdict, "words": words}})
            trying.rename(place / name_of(index))
            return
        self._without.setdefault(block, []).append(index)
        if index not in self._folder.made:
            self._folder.refused[index] = words

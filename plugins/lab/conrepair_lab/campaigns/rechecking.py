"""Ask whether findings are still seen by what's installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.application.engine.job_table import reach_of
from conrepair.application.engine.place import executor, make_environments
from conrepair.application.engine.side_by_side import run_side_by_side
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.scratch import SCRATCH, scratch_folder
from conrepair.ground.runtime.files.whole import make_folder
from conrepair.ground.runtime.processes.workers import ENDED, Failure, Job, Outcome
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.ground.runtime.typed import typed
from conrepair_lab.fuzz.finding import Finding
from conrepair_lab.fuzz.shown import Shown
from conrepair_lab.fuzz.suspicion import ENDS
from conrepair_lab.report.fuzz.folder import FINDING, read_finding
from conrepair_lab.systems.registry import entry

_START = 180.0  # more seconds than for its networks, each of which has a limit of its own: libraries are imported


def fuzz_job(kind: str, name: str, payload: Mapping[str, Any], folder: Path, seconds: float) -> Job:
    """A job of one system, and its folder.

    Args:
        kind: As in the table of jobs.
        name: Of the system and its setting.
        payload: Besides that.
        folder: Is made.
        seconds: That its work may take.
    """
    asked = entry(name)
    make_folder(folder)
    return Job(
        kind,
        {"entry": name, **payload},
        folder,
        asked.runs.needs(asked.chosen),
        seconds + _START,
        reach_of(kind, device=asked.chosen.reach),
        asked.runs.environment(asked.chosen),
    )


@dataclass(frozen=True)
class Rechecked:
    """What became of a finding.

    Attributes:
        finding: Which.
        verdict: "there", "gone" or "unknown".
        words: What was seen, or why it isn't known.
        shown: What its program did, where another release was asked.
    """

    finding: Finding
    verdict: str
    words: str
    shown: Shown | None = None


def recheck(folder: Path, room: Path, display: ProgressDisplay, *, workers: int, seconds: float) -> list[Rechecked]:
    """Try the cases of findings again: the systems run them, and no program that lies in a folder.

    Environments of other releases are made where they aren't there.

    Args:
        folder: Of a campaign, of findings, or of one.
        room: Where folders for workers are made.
        display: Shows progress.
        workers: Worker processes.
        seconds: For each finding.

    Raises:
        UsageError: if there are none.
        DataError: if one isn't what it says.
        ToolEnvironmentError: if an environment can't be made.
    """
    return tried_again(findings_below(folder), room, display, workers=workers, seconds=seconds)


def findings_below(folder: Path) -> list[tuple[Path, Finding]]:
    """Findings, each with its folder, in order.

    Args:
        folder: Of a campaign, of findings, or of one.

    Raises:
        UsageError: if there are none.
        DataError: if one isn't what it says.
    """
    folders = [path.parent for path in sorted(folder.rglob(FINDING))]
    if not folders:
        raise UsageError(f"{folder} holds no finding ({FINDING}). Give a campaign's folder, or one below it.")
    return [(item, read_finding(item)) for item in folders]


def tried_again(
    findings: Sequence[tuple[Path, Finding]], room: Path, display: ProgressDisplay, *, workers: int, seconds: float
) -> list[Rechecked]:
    """Try some cases again, by the releases that findings say.

    Args:
        findings: Each with the folder of its case.
        room: As of `recheck`.
        display: As of `recheck`.
        workers: As of `recheck`.
        seconds: As of `recheck`.

    Raises:
        ToolEnvironmentError: if an environment can't be made.
    """
    entries = [entry(finding.entry) for _, finding in findings]
    make_environments((need for each in entries for need in each.runs.needs(each.chosen)), display)
    found: dict[Path, Rechecked] = {}
    with scratch_folder(room, SCRATCH) as work, executor(workers, folders=(work,)) as pool:
        jobs, whose = [], {}
        for place, (where, finding) in enumerate(findings):
            payload = {"case": where, "key": finding.case, "suspicion": finding.suspicion}
            job = fuzz_job("fuzz_recheck", finding.entry, payload, work / str(place), seconds)
            jobs.append(job)
            whose[job.folder] = where, finding

        def ended(job: Job, outcome: Outcome) -> None:
            where, finding = whose[job.folder]
            found[where] = _rechecked(finding, outcome)
            stage.advance()

        with display.stage("recheck", len(jobs)) as stage:
            run_side_by_side(pool, jobs, ended, lambda: None)
    return [found[where] for where, _ in findings]


def _rechecked(finding: Finding, outcome: Outcome) -> Rechecked:
    if isinstance(outcome, Failure):
        ends = outcome.kind in ENDED and finding.suspicion.kind in ENDS
        return Rechecked(finding, "there" if ends else "unknown", str(outcome))
    verdict, words, ran = outcome.value
    return Rechecked(finding, verdict, words, typed(Shown, ran) if ran else None)

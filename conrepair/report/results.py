"""What the verbs come to, as values that say the verdict, the faults, and write their files."""

from __future__ import annotations

import dataclasses
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from conrepair.evaluate.verdict import Verdict
from conrepair.frameworks.identity import place_model
from conrepair.localization.result import Localization, LocatedFault
from conrepair.metrics.statistics import TimeStatistics
from conrepair.repairs.result import RepairResult
from conrepair.report.encode import encode
from conrepair.report.localization.about import About, about_step
from conrepair.report.localization.advice import seen, verdict_advice
from conrepair.report.localization.document import localization_document
from conrepair.report.localization.write import check_localization_folder, write_localization
from conrepair.report.repair.summary import repair_line
from conrepair.report.repair.write import advice_in, check_repair_folder, made_anew, write_refusal, write_repair
from conrepair.report.result import AuditResult, Problem, Row
from conrepair.report.saved import DOCUMENT, result_text
from conrepair.report.write import check_folder, report_json, row_json, write_audit
from conrepair.runtime.errors import ConrepairError, ExitCode, UsageError
from conrepair.runtime.files import put_text, whole_output, write_json
from conrepair.runtime.store import RECORD
from conrepair.runtime.words import shortened

__all__ = ["Compared", "Converted", "Executed", "Localized", "Repaired", "check_run_folder", "refused"]

RUN = "run.json"

_FAULTS, _NAME = 6, 60


def _fault_lines(faults: tuple[LocatedFault, ...]) -> list[str]:
    lines = []
    for fault in faults[:_FAULTS]:
        layer = next(iter(fault.target_layers or (fault.target_tensor,)))
        evidence = f": {fault.evidence[0]}" if fault.evidence else ""
        lines.append(f"  {fault.kind.value} at {shortened(layer, _NAME)}{evidence}")
    if len(faults) > _FAULTS:
        lines.append(f"  and {len(faults) - _FAULTS} more")
    return lines


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """What a run says of one of its models beside its source.

    Attributes:
        run: All of it.
        row: Of that model.
    """

    run: AuditResult
    row: Row

    @property
    def verdict(self) -> Verdict | None:
        """Of the target beside its source; None where it can't be told, or wasn't asked, see `reason`."""
        return self.row.verdict

    @property
    def reason(self) -> str:
        """In words."""
        return self.row.reason

    @property
    def _judgement(self) -> str:
        return f"{'not compared' if self.verdict is None else self.verdict.value}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; those of report.json."""
        value: dict[str, Any] = json.loads(json.dumps(report_json(self.run)))
        return value


@dataclass(frozen=True, kw_only=True)
class Compared(_Judged):
    """What a comparison of answers came to.

    Attributes:
        run: All of it.
        row: Of the target.
        store: Where files of it are until it's saved.
    """

    store: Path

    @property
    def faults(self) -> tuple[LocatedFault, ...]:
        """Layers at fault, where the target was looked into; `localize` always does."""
        return () if self.row.localized.result is None else self.row.localized.result.faults

    @property
    def problem(self) -> Problem | None:
        """Why something is missing."""
        return next((row.problem for row in self.run.rows if row.problem is not None), None)

    @property
    def exit_code(self) -> int:
        """As the command line's."""
        return self.run.exit_code

    def save(self, folder: str | Path) -> Path:
        """Write the report, the answers and their comparison; the folder appears whole.

        Args:
            folder: That of an earlier comparison is replaced.

        Returns:
            The folder.

        Raises:
            StorageError: if it can't be written.
            UsageError: if the folder holds something else.
        """
        place = Path(folder).absolute()
        check_folder(place, [Path(row.ran.artifact.path) for row in self.run.rows if row.ran.artifact is not None])
        write_audit(dataclasses.replace(self.run, folder=place), self.store)
        return place

    def __str__(self) -> str:
        return "\n".join([self._judgement, *_fault_lines(self.faults)])


@dataclass(frozen=True, kw_only=True)
class Converted(_Judged):
    """What a conversion came to.

    Attributes:
        run: All of it.
        row: Of the result.
    """

    @property
    def model(self) -> Path:
        """The converted model's file or folder, in a scratch folder until it's saved."""
        if self.row.ran.artifact is None:
            raise ValueError("a conversion that gave nothing")
        return Path(self.row.ran.artifact.path)

    @property
    def route(self) -> str:
        """The converters, joined by +."""
        return self.row.conversion

    @property
    def faults(self) -> tuple[LocatedFault, ...]:
        """None are looked for; `localize` names them."""
        return ()

    @property
    def exit_code(self) -> int:
        """Of the comparison."""
        return self.row.exit_code

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Put the converted model where it's wanted.

        Args:
            path: File or folder.
            force: Whether one that is there is replaced.

        Returns:
            The path.

        Raises:
            StorageError: if it can't be written.
            UsageError: if there's one already.
        """
        place = Path(path).absolute()
        if place.exists() and not force:
            raise UsageError(f"{place} exists. Give another path, or force=True to replace it.")
        place_model(self.model, place, self.model, force=force)
        return place

    def __str__(self) -> str:
        return f"{self.model.name} by {self.route}: {self._judgement}"


@dataclass(frozen=True, kw_only=True)
class Executed:
    """What a run of one model came to.

    Attributes:
        run: All of it.
        row: Of the model.
    """

    run: AuditResult
    row: Row

    @property
    def outputs(self) -> dict[str, npt.NDArray[Any]]:
        """By name, samples first; large ones are memory-mapped, and there as long as this is."""
        return {} if self.row.ran.run is None else self.row.ran.run.arrays

    @property
    def times(self) -> TimeStatistics | None:
        """Per sample, in seconds; None where there was but one batch."""
        return self.row.ran.times

    @property
    def verdict(self) -> Verdict | None:
        """Of what a compiler made, beside the model in its own library; None without one."""
        return self.row.verdict

    @property
    def exit_code(self) -> int:
        """As the command line's."""
        return self.row.exit_code

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the outputs as .npy, and run.json; the folder appears whole.

        Args:
            folder: For them.
            force: Whether an earlier run's is replaced.

        Returns:
            The folder.

        Raises:
            StorageError: if it can't be written.
            UsageError: if there's one already, or one of something else.
        """
        place = Path(folder).absolute()
        check_run_folder(place, force=force)
        if self.row.ran.run is None:
            raise ValueError("a model that didn't run")
        with whole_output(place) as temporary:
            shutil.copytree(self.row.ran.run.folder, temporary, ignore=shutil.ignore_patterns(RECORD))
            write_json(temporary / RUN, self.to_dict())
            text = result_text(dataclasses.replace(self.run, folder=place))
            put_text(temporary / DOCUMENT, text)
        return place

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; those of run.json."""
        value: dict[str, Any] = json.loads(json.dumps(row_json(self.row)))
        return value

    def __str__(self) -> str:
        count = 0 if self.row.ran.run is None else self.row.ran.run.count
        return f"{count} samples on {self.row.backend}"


def check_run_folder(folder: Path, *, force: bool) -> None:
    """Make sure that writing a run's outputs replaces nothing else.

    Args:
        folder: For them.
        force: Whether an earlier run's is replaced.

    Raises:
        UsageError: if there's one already, or one of something else.
    """
    if folder.exists() and not (folder / RUN).is_file():
        raise UsageError(f"{folder} exists and holds no outputs of a run, so it isn't replaced. Give another output.")
    if folder.exists() and not force:
        raise UsageError(f"{folder} exists. Give another output, or --force to replace it.")


@dataclass(frozen=True, kw_only=True)
class Localized:
    """Where a target stops being its source.

    Attributes:
        run: All of it.
        row: Of the target.
    """

    run: AuditResult
    row: Row

    @property
    def localization(self) -> Localization:
        """All that was found."""
        return self.row.localized.steps[-1].localization

    @property
    def about(self) -> About:
        """The circumstances."""
        return about_step(self.row.localized.steps[-1], self.row, self.run)

    @property
    def verdict(self) -> Verdict:
        """Of the target."""
        return self.localization.verdict

    @property
    def reason(self) -> str:
        """In words."""
        return self.localization.reason

    @property
    def faults(self) -> tuple[LocatedFault, ...]:
        """Layers at fault, the guiltiest first."""
        return self.localization.faults

    @property
    def exit_code(self) -> int:
        """As the command line's."""
        return int(ExitCode.EQUIVALENT if self.localization.is_right else ExitCode.DIFFERENT)

    def save(self, folder: str | Path) -> Path:
        """Write localization.json and what is made of it; the folder appears whole.

        Args:
            folder: That of an earlier localization is replaced.

        Returns:
            The folder.

        Raises:
            StorageError: if it can't be written.
            UsageError: if the folder holds something else.
        """
        place = Path(folder).absolute()
        check_localization_folder(place, (self.about.source.path, self.about.target.path))
        document = {DOCUMENT: result_text(dataclasses.replace(self.run, folder=place))}
        write_localization(self.localization, place, self.about, document)
        return place

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; those of localization.json."""
        return localization_document(self.localization, self.about).model_dump(mode="json")

    def __str__(self) -> str:
        found = self.localization
        told = verdict_advice(found, self.about) if found.is_right else f"on {seen(found, self.about)}"
        return "\n".join([f"{self.verdict.value}: {self.reason}", *_fault_lines(self.faults), told])


@dataclass(frozen=True, kw_only=True)
class Repaired:
    """What a repair came to.

    Attributes:
        run: All of it.
        row: Of the target; its files are where the repair made them, until it's saved.
    """

    run: AuditResult
    row: Row

    @property
    def before(self) -> Localization:
        """The target as it came."""
        if self.row.localized.result is None:
            raise ValueError("a target that wasn't localized")
        return self.row.localized.result

    @property
    def about(self) -> About | None:
        """The circumstances of the localization before it."""
        steps = self.row.localized.steps
        return about_step(steps[-1], self.row, self.run) if steps else None

    @property
    def result(self) -> RepairResult | None:
        """What was changed; None where no layer is at fault, or it couldn't be tried."""
        return self.row.repaired.result

    @property
    def mended(self) -> bool:
        """Whether the target is the source's equal now, or was before."""
        return self.before.is_right if self.result is None else self.result.mended

    @property
    def verdict(self) -> Verdict:
        """Of the target as it is now."""
        done = self.result
        if done is None or not done.edits or not done.mended:
            return self.before.verdict
        return done.after.verdict

    @property
    def reason(self) -> str:
        """In words."""
        return self.before.reason if self.result is None else repair_line(self.result)

    @property
    def faults(self) -> tuple[LocatedFault, ...]:
        """What was at fault in the target as it came."""
        return self.before.faults

    @property
    def model(self) -> Path | None:
        """The repaired model's file; None where nothing was changed in one."""
        return None if self.result is None or self.result.model is None else Path(self.result.model.path)

    @property
    def exit_code(self) -> int:
        """As the command line's."""
        if self.result is not None and self.result.interrupted:
            return int(ExitCode.INTERRUPTED)
        return int(ExitCode.EQUIVALENT if self.mended else ExitCode.DIFFERENT)

    @property
    def tells(self) -> bool:
        """Whether there's anything to write: an edit, or that a fault is left."""
        done = self.result
        return done is not None and bool(done.edits or (done.before.faults and not done.interrupted))

    def save(self, folder: str | Path) -> Repaired:
        """Write the repaired model, patch.json and repair.json; the folder appears whole, where there's anything.

        Args:
            folder: That of an earlier repair is replaced.

        Returns:
            The result, with its files where they are now.

        Raises:
            ConrepairError: why the repair couldn't be tried, once what is known was written.
            StorageError: if it can't be written.
            UsageError: if the folder holds something else.
        """
        place = Path(folder).absolute()
        compared = self.row.localized.steps[-1].compared if self.row.localized.steps else None
        check_repair_folder(
            place, () if compared is None else (Path(compared.source.path), Path(compared.target.path))
        )
        if self.row.repaired.problem is not None:
            raise refused(self.row, place)
        if self.result is None or not self.tells:
            return self

        def saved(written: RepairResult) -> Repaired:
            advice = advice_in(self.row.repaired.advice, place, kept=not written.mended)
            repaired = dataclasses.replace(self.row.repaired, result=written, advice=advice)
            row = dataclasses.replace(self.row, repaired=repaired)
            return Repaired(run=dataclasses.replace(self.run.with_row(row), folder=place), row=row)

        done = write_repair(
            self.result, place, self.row.repaired.advice, lambda written: {DOCUMENT: result_text(saved(written).run)}
        )
        return saved(done)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        if self.result is None:
            return {"mended": self.mended, "reason": self.reason, "edits": [], "notes": list(self.before.notes)}
        return {**encode(self.result), "advice": encode(self.row.repaired.advice)}

    def __str__(self) -> str:
        if self.result is None and self.before.is_right:
            return f"nothing to repair: {self.reason}\n{verdict_advice(self.before, self.about)}"
        told = self.reason if self.result is not None else f"not repaired: {self.reason}"
        return "\n".join([told, *_fault_lines(self.faults)])


def refused(row: Row, folder: Path) -> ConrepairError:
    """Why a target can't be repaired, once what is known of it was written.

    Args:
        row: Of a target that was localized, and not repaired.
        folder: For what is known.
    """
    problem = row.repaired.problem
    if problem is None or row.localized.result is None:
        raise ValueError("a target that was repaired, or not localized")
    if problem.circumstance:  # no room, no memory: the same command goes on with the search
        return problem.as_error()
    reason = " ".join(part for part in (problem.message, problem.explanation) if part)
    write_refusal(reason, row.localized.result, folder, row.repaired.advice)
    kept = f"written: {folder}"
    if name := made_anew(row.repaired.advice):
        kept += f", with {name}: converted anew, no layer is at fault in it"
    return dataclasses.replace(problem, explanation="\n".join(filter(None, (problem.explanation, kept)))).as_error()

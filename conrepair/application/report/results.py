"""What the verbs come to, as values that say the verdict, the faults, and write their files."""

from __future__ import annotations

import dataclasses
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from conrepair.application.report.audit_folder import write_audit
from conrepair.application.report.figures import in_a_sentence
from conrepair.application.report.folder import check_folder, run_output, write_folder
from conrepair.application.report.localization.advice import About, about_step, seen, verdict_advice
from conrepair.application.report.repair.files import made_anew, repair_files
from conrepair.application.report.repair.summary import repair_line
from conrepair.application.report.result import AuditResult, Problem, Ran, RepairedTarget, Row
from conrepair.application.report.row_paths import placed
from conrepair.application.report.saved import result_json
from conrepair.diagnosis.localization.result import Localization, LocatedFault
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.models.identity import place_model
from conrepair.ground.intake.arguments import path as path_argument
from conrepair.ground.intake.flags import in_python
from conrepair.ground.metrics.statistics import TimeStatistics
from conrepair.ground.runtime.errors import ConrepairError, UsageError
from conrepair.ground.runtime.files.outputs import Output
from conrepair.ground.runtime.files.store import RECORD
from conrepair.ground.runtime.words import counted, shortened
from conrepair.verdicts.evaluate.verdict import Verdict

_FAULTS, _NAME = 6, 60


def _fault_lines(faults: tuple[LocatedFault, ...]) -> list[str]:
    told = [
        ": ".join([f"  {fault.kind.value} at {shortened(fault.places[0], _NAME)}", *fault.evidence[:1]])
        for fault in faults[:_FAULTS]
    ]
    more = len(faults) - _FAULTS
    return [*told, f"  and {more} more"] if more > 0 else told


@dataclass(frozen=True, kw_only=True, repr=False)
class _Told:
    """What a verb says of a model.

    Attributes:
        run: As reports show it, an audit of few models.
        place: Of the model's row there.
    """

    run: AuditResult
    place: int = -1

    @property
    def row(self) -> Row:
        """The model's, there."""
        return self.run.rows[self.place]

    @property
    def verdict(self) -> Verdict | None:
        """Of the model beside its source; None where it can't be told, or wasn't asked."""
        return self.row.verdict

    @property
    def exit_code(self) -> int:
        """As the command line's."""
        return self.run.exit_code_of(self.row)

    @property
    def faults(self) -> tuple[LocatedFault, ...]:
        """Layers at fault, the guiltiest first; of a repair, as the target came."""
        found = self.row.localized.result
        return () if found is None else found.faults

    @property
    def about(self) -> About:
        """What was compared, where layers were, and on what."""
        return about_step(self.row, self.run)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know: how data were fitted to inputs, what nobody said."""
        return self.run.notes

    def __bool__(self) -> bool:
        """Refuse to be taken for a verdict: `assert compare(a, b)` would always pass.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            f"a {type(self).__name__} is neither true nor false. Ask its verdict or exit_code, or use "
            "conrepair.testing.assert_equivalent."
        )

    def __repr__(self) -> str:
        """As `str`: what a run holds is a million letters, which a notebook would save with each cell."""
        return f"<{type(self).__name__} {self}>"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; those of result.json."""
        return result_json(self.run)

    def _placed_in(self, folder: str | Path, *inputs: str | Path) -> AuditResult:
        """The run with its files in a folder.

        Args:
            folder: That of an earlier run of the kind is replaced.
            *inputs: That were read.

        Raises:
            UsageError: if the folder holds something else.
        """
        place = path_argument("folder", folder).absolute()
        check_folder(place, self.run.kind, inputs)
        return dataclasses.replace(self.run, folder=place)


@dataclass(frozen=True, kw_only=True, repr=False)
class _Shown(_Told):
    """What a notebook shows, too."""

    def _repr_html_(self) -> str:
        from conrepair.application.report.page.page import notebook_html  # Jinja2 takes a while to import

        return notebook_html(self.run)


@dataclass(frozen=True, kw_only=True, repr=False)
class _Judged(_Shown):
    """What a verb says of a model beside its source."""

    @property
    def reason(self) -> str:
        """In words."""
        return self.row.reason

    @property
    def _judgement(self) -> str:
        return f"{'not compared' if self.verdict is None else self.verdict.value}: {self.reason}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Compared(_Judged):
    """What a comparison of answers came to.

    Attributes:
        store: Where files of it are until it's saved.
    """

    store: Path

    @property
    def exit_code(self) -> int:
        """As the command line's, of both."""
        return self.run.exit_code

    @property
    def problem(self) -> Problem | None:
        """Why something is missing."""
        return next((row.problem for row in self.run.rows if row.problem is not None), None)

    @property
    def arithmetic(self) -> str:
        """That explains what float32 doesn't (`conrepair.verdicts.judging.arithmetic`); "" where none does."""
        return "" if self.row.comparison is None else self.row.comparison.arithmetic

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
        inputs = [Path(row.ran.artifact.path) for row in self.run.rows if row.ran.artifact is not None]
        return write_audit(self._placed_in(folder, *inputs), self.store).folder

    def __str__(self) -> str:
        figures = filter(None, [in_a_sentence(self.row.comparison)])
        notes = [f"note: {note}" for note in self.notes]
        return in_python("\n".join([self._judgement, *figures, *_fault_lines(self.faults), *notes]))


@dataclass(frozen=True, kw_only=True, repr=False)
class Converted(_Judged):
    """What a conversion came to.

    Attributes:
        model: The converted model's file or folder, in a scratch folder until it's saved.
    """

    model: Path

    @property
    def route(self) -> str:
        """The converters, joined by +."""
        return self.row.conversion

    def placed(self, path: Path) -> Converted:
        """The same, its model being elsewhere.

        Args:
            path: Where it is.
        """
        row = placed(self.row, lambda known: str(path) if known == str(self.model) else known)
        return dataclasses.replace(self, model=path, run=self.run.with_row(row))

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Put the converted model where it's wanted.

        Args:
            path: File or folder.
            force: Whether an earlier conversion's is replaced.

        Returns:
            The path.

        Raises:
            StorageError: if it can't be written.
            UsageError: if there's one already, or something else.
        """
        place = path_argument("path", path).absolute()
        check_model_output(place, force=force)
        with _model_output(place).write() as temporary:
            place_model(self.model, temporary)
        return place

    def __str__(self) -> str:
        return f"{self.model.name} by {self.route}: {self._judgement}"


def check_model_output(path: Path, *, force: bool) -> None:
    """Make sure that writing a model replaces none but an earlier conversion's, nor anybody's weights.

    Args:
        path: Where it shall stand.
        force: Whether an earlier one is replaced.

    Raises:
        UsageError: if there's one already, or something else.
        StorageError: if it can't be looked into.
    """
    output = _model_output(path)
    output.check(force=force)
    weights = re.compile(rf"{re.escape(path.name)}\.data\d*")  # of an ONNX file that's too large for one
    for file in sorted(path.parent.iterdir()) if path.parent.is_dir() else ():
        if weights.fullmatch(file.name) and not (force and output.wrote(path.name) and output.wrote(file.name)):
            raise UsageError(f"{file} exists, where the weights of {path.name} would go. Give another output.")


def _model_output(path: Path) -> Output:
    return Output(path, "conversion", beside=True)


@dataclass(frozen=True, kw_only=True, repr=False)
class Executed(_Told):
    """What a run of one model came to; the verdict is of what a compiler made, beside the model in its library."""

    @property
    def ran(self) -> Ran:
        """The model, and what came of running it."""
        return self.row.ran

    @property
    def backend(self) -> str:
        """Where it ran."""
        return self.row.backend

    @property
    def outputs(self) -> dict[str, npt.NDArray[Any]]:
        """By name, samples first; large ones are memory-mapped, and there as long as this is."""
        return {} if self.ran.run is None else self.ran.run.given

    @property
    def times(self) -> TimeStatistics | None:
        """Per sample, in seconds; None where there was but one batch."""
        return self.ran.times

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the outputs as .npy, and result.json; the folder appears whole.

        Args:
            folder: For them.
            force: Whether an earlier run's is replaced.

        Returns:
            The folder.

        Raises:
            StorageError: if it can't be written.
            UsageError: if there's one already, or one of something else.
        """
        place = path_argument("folder", folder).absolute()
        check_run_folder(place, force=force)
        if self.ran.run is None:
            raise ValueError("a model that didn't run")
        outputs, run = self.ran.run.folder, dataclasses.replace(self.run, folder=place)

        def fill(temporary: Path) -> AuditResult:
            shutil.copytree(outputs, temporary, ignore=shutil.ignore_patterns(RECORD), dirs_exist_ok=True)
            return run.with_row(placed(self.row, lambda path: str(place) if path == str(outputs) else path))

        write_folder(run, fill)
        return place

    def __str__(self) -> str:
        return f"{counted(0 if self.ran.run is None else self.ran.run.count, 'sample')}, run by {self.row.ran_by}"


def check_run_folder(folder: Path, *, force: bool, data: str | Path | None = None) -> None:
    """Make sure that writing a run's outputs replaces nothing else.

    Args:
        folder: For them.
        force: Whether an earlier run's is replaced.
        data: That the model is fed.

    Raises:
        UsageError: if there's one already, or one of something else, or the data lies in it.
    """
    run_output(folder, "execute").check(inputs=[] if data is None else [data])
    run_output(folder, "execute").check(force=force)


@dataclass(frozen=True, kw_only=True, repr=False)
class Localized(_Shown):
    """Where a target stops being its source."""

    @property
    def localization(self) -> Localization:
        """All that was found."""
        return _layers_of(self.row)

    @property
    def verdict(self) -> Verdict:
        """Of the target."""
        return self.localization.verdict

    @property
    def reason(self) -> str:
        """In words."""
        return self.localization.reason

    @property
    def arithmetic(self) -> str:
        """That explains what float32 doesn't (`conrepair.verdicts.judging.arithmetic`); "" where none does."""
        return self.localization.arithmetic

    def save(self, folder: str | Path) -> Path:
        """Write result.json and what is made of it; the folder appears whole.

        Args:
            folder: That of an earlier localization is replaced.

        Returns:
            The folder.

        Raises:
            StorageError: if it can't be written.
            UsageError: if the folder holds something else.
        """
        run = self._placed_in(folder, self.about.source.path, self.about.target.path)
        return write_folder(run, lambda _: run).folder

    def __str__(self) -> str:
        found = self.localization
        told = verdict_advice(found, self.about) if found.is_right else f"on {seen(found, self.about)}"
        return in_python("\n".join([f"{self.verdict.value}: {self.reason}", *_fault_lines(self.faults), told]))


def _layers_of(row: Row) -> Localization:
    found = row.localized.result
    if found is None:
        raise ValueError(f"{row.name} was not localized, and nothing says why")
    return found


@dataclass(frozen=True, kw_only=True, repr=False)
class Repaired(_Shown):
    """What a repair came to."""

    @property
    def before(self) -> Localization:
        """The target as it came."""
        return _layers_of(self.row)

    @property
    def repaired(self) -> RepairedTarget:
        """What became of it."""
        return self.row.repaired

    @property
    def result(self) -> RepairResult | None:
        """What was changed; None where no layer is at fault, or it couldn't be tried."""
        return self.repaired.result

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
    def model(self) -> Path | None:
        """The repaired model's file; None where nothing was changed in one."""
        return None if self.result is None or self.result.model is None else Path(self.result.model.path)

    @property
    def tells(self) -> bool:
        """Whether there's anything to write: an edit, or that a fault is left."""
        done = self.result
        return done is not None and bool(done.edits or (done.before.faults and not done.interrupted))

    def save(self, folder: str | Path) -> Repaired:
        """Write the repaired model, patch.json and result.json; the folder appears whole, where there's anything.

        Args:
            folder: That of an earlier repair is replaced.

        Returns:
            The result, with its files where they are now.

        Raises:
            ConrepairError: why the repair couldn't be tried, once what is known was written.
            StorageError: if it can't be written.
            UsageError: if the folder holds something else.
        """
        run = self._placed_in(folder, self.about.source.path, self.about.target.path)
        problem = self.repaired.problem
        if problem is not None and problem.circumstance:  # no room, no memory: the same command goes on
            raise problem.as_error()
        if problem is None and not self.tells:
            return self

        def fill(temporary: Path) -> AuditResult:
            repaired = repair_files(self.repaired, temporary, run.folder)
            return run.with_row(dataclasses.replace(self.row, repaired=repaired))

        done = write_folder(run, fill)
        saved = dataclasses.replace(self, run=done)
        if problem is not None:
            raise _refused(problem, saved.repaired, run.folder)
        return saved

    def __str__(self) -> str:
        if self.result is None and self.before.is_right:
            return in_python(f"nothing to repair: {self.reason}\n{verdict_advice(self.before, self.about)}")
        told = self.reason if self.result is not None else f"not repaired: {self.reason}"
        return in_python("\n".join([told, *_fault_lines(self.faults)]))


def _refused(problem: Problem, known: RepairedTarget, folder: Path) -> ConrepairError:
    """Why a target can't be repaired, and what was written of what is known."""
    kept = f"written: {folder}"
    if name := made_anew(known.advice):
        kept += f", with {name}: converted again; no layer of it is faulty"
    return dataclasses.replace(problem, explanation="\n".join(filter(None, (problem.explanation, kept)))).as_error()

"""A run held against a baseline: differences that are known, which people keep beside their models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pydantic

from conrepair.application.report.changes.changes import Sort, Standing, change_of, standing_of
from conrepair.application.report.figures import Measure, Share
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.told import AT, OF_FILES, held_notes, known_fault, place_of, target_rows
from conrepair.ground.runtime.files.baseline import NO_REASON, Known, named, read_baseline, write_baseline
from conrepair.verdicts.evaluate.verdict import Verdict

_Number = Annotated[float | None, pydantic.Field(strict=False)]  # "inf" and "nan" are texts in JSON
_APART = 0.05  # of the listed error, by which another one is another fault's where layers weren't compared


def _share(value: list[int] | None) -> list[int] | None:
    if value is not None and not 0 <= value[0] <= value[1]:
        raise ValueError("it's how many differ, and of how many")
    return value


class KnownTarget(Known):
    """A target that differs.

    Attributes:
        model: Its name.
        conversion: Converters joined by +; "" for what nobody here converted.
        backend: Where it runs; "": anywhere.
        verdict: No worse one is known; None: any.
        faults: The only faults that are known, each as "KIND at LAYER", by either model's name of it; None: any.
        differing: Predictions that differ, and those that were compared.
        error: Relative error of the worst output.
        floor: That rounding explains.
    """

    model: str
    conversion: str = ""
    backend: str = ""
    verdict: Annotated[Verdict | None, pydantic.Field(strict=False)] = None
    faults: list[str] | None = None
    differing: Annotated[
        list[int] | None, pydantic.Field(min_length=2, max_length=2), pydantic.AfterValidator(_share)
    ] = None
    error: _Number = None
    floor: _Number = None

    def is_of(self, row: Row) -> bool:
        """Whether it's a row's target: a model that nobody here converted may be called by its file, too."""
        called = self.model == row.model or (not row.conversion and self.model == _file(row))
        return called and self.conversion == row.conversion and self.backend in {"", row.backend}

    def standing(self, now: Standing, aliases: Mapping[tuple[str, str], tuple[str, str]]) -> Standing:
        """How the target stood.

        Args:
            now: How it stands: what the entry doesn't say is as it is.
            aliases: What its faults are called here, by their other names.
        """
        figures: dict[str, Any] = {
            "answers": self.differing and Share(*self.differing),
            "error": None if self.error is None else Measure(self.error),
            "floor": None if self.floor is None else Measure(self.floor),
        }
        told = {name: value for name, value in figures.items() if value is not None}
        faults = now.faults
        if self.faults is not None:
            known = [place if place in (now.faults or ()) else aliases.get(place, place) for place in self.places]
            faults = dict.fromkeys(known, "")
        stood = dataclasses.replace(now, faults=faults, figures=dataclasses.replace(now.figures, **told))
        if self.verdict is None:
            return stood
        return dataclasses.replace(stood, word=str(self.verdict), rank=self.verdict.severity)

    @property
    def places(self) -> list[tuple[str, str]]:
        """Kind and layer of each fault."""
        parts = [text.partition(AT) for text in self.faults or ()]
        return [(kind, layer) for kind, _, layer in parts]

    def is_another(self, now: Standing, file: Path) -> str:
        """Why what's wrong needn't be what is known; "" where layers tell it, or outputs are as they were.

        Args:
            now: How the target stands.
            file: The baseline.
        """
        error = now.figures.error
        if now.word != Verdict.FAULTY or None not in (self.faults, now.faults) or None in (self.error, error):
            return ""
        listed, now_is = Measure(self.error or 0.0), Measure(error or 0.0)
        if not abs(now_is - listed) > _APART * listed + (now.figures.floor or 0.0):
            return ""
        unseen = f"{file} lists no faulty layers" if self.faults is None else "layers weren't compared"
        return (
            f"the relative error is {now_is}, {listed} in {file}, and {unseen}: outputs alone can't tell a known "
            "fault from a new one"
        )


def _file(row: Row) -> str:
    return "" if row.ran.artifact is None else Path(row.ran.artifact.path).name


def wants_layers(file: str | Path | None, target: str, *, update: bool) -> bool:
    """Whether outputs say too little of a file: its faulty layers are listed, or shall be.

    Args:
        file: The baseline; None: there's none.
        target: The converted file.
        update: Whether it's written anew.

    Raises:
        UsageError: if it's no baseline, or none was named that could be written.
    """
    if file is None and not update:
        return False
    known = read_baseline(path, KnownTarget) if (path := named(file)).exists() or not update else ()
    return update or any(item.model == Path(target).name and item.faults for item in known)


def held_against(result: AuditResult, file: str | Path | None, *, update: bool = False) -> AuditResult:
    """A run whose known differences make no command fail: what is new or worse does, and what is gone is said.

    Args:
        result: Of any verb, or of an audit.
        file: The baseline; None: there's none.
        update: Write it anew first, as the targets of this run are now; entries of other targets, and reasons, stay.

    Raises:
        UsageError: if it's no baseline, or none was named that could be written.
    """
    if file is None and not update:
        return result
    path = named(file)
    known: Sequence[KnownTarget] = read_baseline(path, KnownTarget) if path.exists() or not update else ()
    if update:
        rows = target_rows(result)
        others = [item for item in known if not any(map(item.is_of, rows))]
        known = [*others, *(_entry(row, result, known) for row in rows if _differs(row, result))]
        write_baseline(path, known)
    _, before = held_notes(result)  # by another baseline
    accepted, notes = dict[str, str](), list[str]()
    for row in target_rows(result):
        entry, now, aliases = _entry_of(row, known), standing_of(row, result), _aliases(row)
        name = f"{now.name} on {row.ran_by}"
        if not _differs(row, result):
            if entry is not None and row.verdict is not None:
                notes.append(f"no longer there: {name} is {now.word}; {path} has it: --update-baseline removes it")
        elif entry is None:
            notes.append(f"new: {name} is {now.word}, and {path} doesn't list it")
        elif (change := change_of(stood := entry.standing(now, aliases), now)).sort is Sort.WORSE:
            worse = [detail for detail in change.details if detail.sort in {Sort.WORSE, Sort.NEW}]
            told = [
                f"{item.what} isn't listed: {item.after}"
                if item.sort is Sort.NEW
                else f"{item.what}: {item.before or 'none'} in {path}, {item.after} now"
                for item in worse
            ]
            verdict = [f"{change.before} in {path}, {change.after} now"] if change.before != change.after else []
            notes.append(f"worse: {name}: {'; '.join(verdict + told)}")
            both = [place for place in now.faults or () if entry.faults is not None and place in (stood.faults or ())]
            accepted |= {known_fault(row, place): entry.where for place in both}
            notes += [f"known: {AT.join(place)} ({entry.where})" for place in both]
        elif why := entry.is_another(now, path):
            notes.append(f"can't tell: {name} is {now.word}: {why}")
        else:
            accepted[row.where] = entry.where
            blind = entry.faults is None and entry.error is not None and now.word == Verdict.FAULTY
            more = "; by its outputs alone: --update-baseline lists its faulty layers, too" if blind else ""
            notes.append(f"known: {name} is {now.word} ({entry.where}){more}")
    return dataclasses.replace(result, known=accepted, notes=(*before, *notes))


def _aliases(row: Row) -> dict[tuple[str, str], tuple[str, str]]:
    """What faults are called by, by the other names of their layers."""
    sides = [row.localized.result, *(() if row.repaired.result is None else (row.repaired.result.after,))]
    faults = [fault for side in sides if side is not None for fault in side.faults]
    return {
        (str(fault.kind), name): place_of(fault)
        for fault in reversed(faults)
        for name in (*fault.target_layers, fault.target_tensor, *fault.source_layers)
    }


def _differs(row: Row, result: AuditResult) -> bool:
    """Whether it was judged, and makes the command fail: what couldn't be looked at is no difference."""
    return row.verdict is not None and bool(dataclasses.replace(result, known={}).exit_code_of(row))


def _entry_of(row: Row, known: Sequence[KnownTarget]) -> KnownTarget | None:
    return next((item for item in known if item.is_of(row)), None)


def _entry(row: Row, result: AuditResult, known: Sequence[KnownTarget]) -> KnownTarget:
    now, before = standing_of(row, result), _entry_of(row, known)
    return KnownTarget(
        where=NO_REASON if before is None else before.where,
        model=_file(row) if result.kind in OF_FILES else row.model,  # whatever a verb numbers it by
        verdict=Verdict(now.word) if now.word in set(Verdict) else row.verdict,
        faults=None if now.faults is None else [AT.join(place) for place in now.faults],
        differing=None if now.figures.answers is None else list(now.figures.answers),
        **{name: getattr(row, name) for name in ("conversion", "backend")},
        **{name: getattr(now.figures, name) for name in ("error", "floor")},
    )

"""A run held against a baseline: differences that are known, which people keep beside their models."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pydantic

from conrepair.application.report.changes.changes import Sort, Standing, change_of, standing_of
from conrepair.application.report.figures import Measure, Share
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.told import target_rows
from conrepair.ground.runtime.files.baseline import NO_REASON, Known, named, read_baseline, write_baseline
from conrepair.verdicts.evaluate.verdict import Verdict

_Number = Annotated[float | None, pydantic.Field(strict=False)]  # "inf" and "nan" are texts in JSON
_AT = " at "
_SAID = ("known: ", "new: ", "no longer there: ", "worse: ")


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
        faults: The only faults that are known, each as "KIND at LAYER"; None: any.
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
        """Whether it's a row's target."""
        return (self.model, self.conversion) == (row.model, row.conversion) and self.backend in {"", row.backend}

    def standing(self, now: Standing) -> Standing:
        """How the target stood.

        Args:
            now: How it stands: what the entry doesn't say is as it is.
        """
        figures: dict[str, Any] = {
            "answers": self.differing and Share(*self.differing),
            "error": None if self.error is None else Measure(self.error),
            "floor": None if self.floor is None else Measure(self.floor),
        }
        told = {name: value for name, value in figures.items() if value is not None}
        faults = now.faults if self.faults is None else dict.fromkeys(map(_place, self.faults), "")
        stood = dataclasses.replace(now, faults=faults, figures=dataclasses.replace(now.figures, **told))
        if self.verdict is None:
            return stood
        return dataclasses.replace(stood, word=str(self.verdict), rank=self.verdict.severity)


def _place(text: str) -> tuple[str, str]:
    kind, _, layer = text.partition(_AT)
    return kind, layer


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
    before = [note for note in result.notes if not note.startswith(_SAID)]  # by another baseline
    accepted, notes = dict[str, str](), list[str]()
    for row in target_rows(result):
        entry, now = _entry_of(row, known), standing_of(row, result)
        name = f"{now.name} on {now.backend}"
        if not _differs(row, result):
            if entry is not None and row.verdict is not None:
                notes.append(f"no longer there: {name} is {now.word}; {path} has it: --update-baseline removes it")
        elif entry is None:
            notes.append(f"new: {name} is {now.word}, and {path} doesn't list it")
        elif (change := change_of(entry.standing(now), now)).sort is Sort.WORSE:
            worse = [detail for detail in change.details if detail.sort in {Sort.WORSE, Sort.NEW}]
            told = [f"{item.what}: {item.before or 'none'} in {path}, {item.after} now" for item in worse]
            verdict = [f"{change.before} in {path}, {change.after} now"] if change.before != change.after else []
            notes.append(f"worse: {name}: {'; '.join(verdict + told)}")
        else:
            accepted[row.where] = entry.where
            notes.append(f"known: {name} is {now.word} ({entry.where})")
    return dataclasses.replace(result, known=accepted, notes=(*before, *notes))


def _differs(row: Row, result: AuditResult) -> bool:
    """Whether it was judged, and makes the command fail: what couldn't be looked at is no difference."""
    return row.verdict is not None and bool(dataclasses.replace(result, known={}).exit_code_of(row))


def _entry_of(row: Row, known: Sequence[KnownTarget]) -> KnownTarget | None:
    return next((item for item in known if item.is_of(row)), None)


def _entry(row: Row, result: AuditResult, known: Sequence[KnownTarget]) -> KnownTarget:
    now, before = standing_of(row, result), _entry_of(row, known)
    return KnownTarget(
        where=NO_REASON if before is None else before.where,
        faults=None if now.faults is None else [_AT.join(place) for place in now.faults],
        differing=None if now.figures.answers is None else list(now.figures.answers),
        **{name: getattr(row, name) for name in ("model", "conversion", "backend", "verdict")},
        **{name: getattr(now.figures, name) for name in ("error", "floor")},
    )

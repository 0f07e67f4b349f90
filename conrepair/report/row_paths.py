"""Where the files of a row are: the paths in it, changed all together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from conrepair.frameworks.model import Model
from conrepair.report.result import LocalizedStep, LocalizedTarget, Ran, RepairedTarget, Row

__all__ = ["placed", "relative_to", "resolved_in"]

_Move = Callable[[str], str]


def placed(row: Row, move: _Move) -> Row:
    """A row whose models, builds, outputs and patches lie elsewhere.

    Args:
        row: Of any kind.
        move: The new path of an old one; "" isn't asked for.
    """

    def moved(path: str) -> str:
        return move(path) if path else path

    return replace(
        row,
        ran=_ran(row.ran, moved),
        localized=_localized(row.localized, moved),
        repaired=_repaired(row.repaired, moved),
    )


def _model(model: Model, moved: _Move) -> Model:
    return replace(model, path=moved(model.path))


def _ran(ran: Ran, moved: _Move) -> Ran:
    return replace(
        ran,
        artifact=ran.artifact and _model(ran.artifact, moved),
        build=ran.build and replace(ran.build, folder=Path(moved(str(ran.build.folder)))),
        run=ran.run and replace(ran.run, folder=Path(moved(str(ran.run.folder)))),
    )


def _localized(localized: LocalizedTarget, moved: _Move) -> LocalizedTarget:
    return replace(localized, steps=tuple(_step(step, moved) for step in localized.steps))


def _step(step: LocalizedStep, moved: _Move) -> LocalizedStep:
    files = step.compared
    compared = replace(
        files,
        source=_model(files.source, moved),
        target=_model(files.target, moved),
        build=moved(files.build),
    )
    return replace(step, compared=compared)


def _repaired(repaired: RepairedTarget, moved: _Move) -> RepairedTarget:
    result = repaired.result and replace(
        repaired.result,
        model=repaired.result.model and _model(repaired.result.model, moved),
        patch=repaired.result.patch and moved(repaired.result.patch),
    )
    advice = tuple(replace(item, model=item.model and _model(item.model, moved)) for item in repaired.advice)
    return replace(repaired, result=result, advice=advice)


def relative_to(folder: Path) -> _Move:
    """Paths below a folder as seen from there, others as they are: so that the folder may be moved."""

    def move(path: str) -> str:
        place = Path(path)
        return place.relative_to(folder).as_posix() if place.is_relative_to(folder) else path

    return move


def resolved_in(folder: Path) -> _Move:
    """The inverse: paths as seen from a folder, made absolute."""
    return lambda path: str(folder / path)

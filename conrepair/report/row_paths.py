"""Where the files of a row are: the paths in it, changed all together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from conrepair.evaluate.run import Run
from conrepair.frameworks.model import Model
from conrepair.repairs.outcomes import Advice
from conrepair.repairs.result import RepairResult
from conrepair.report.result import Build, Compared, LocalizedStep, LocalizedTarget, Ran, RepairedTarget, Row

__all__ = ["placed", "relative_to", "resolved_in"]

_Move = Callable[[str], str]
Value = TypeVar("Value")
_PLACES: Mapping[type[Any], tuple[str, ...]] = {
    Row: ("ran", "localized", "repaired"),
    Ran: ("artifact", "build", "run"),
    LocalizedTarget: ("steps",),
    LocalizedStep: ("compared",),
    Compared: ("source", "target", "build"),
    RepairedTarget: ("result", "advice"),
    RepairResult: ("model", "patch"),
    Advice: ("model",),
    Model: ("path",),
    Build: ("folder",),
    Run: ("folder",),
}  # fields that are paths, or hold some


def placed(value: Value, move: _Move) -> Value:
    """A row, or what it holds, whose models, builds, outputs and patches lie elsewhere.

    Args:
        value: A row, a model, a repair's result.
        move: The new path of an old one; "" isn't asked for.
    """
    changed: Value = _placed(value, move)
    return changed


def _placed(value: Any, move: _Move) -> Any:
    if isinstance(value, tuple):
        return tuple(_placed(item, move) for item in value)
    if isinstance(value, str | Path):
        return value and type(value)(move(str(value)))
    names = _PLACES.get(type(value), ())
    return replace(value, **{name: _placed(getattr(value, name), move) for name in names}) if names else value


def relative_to(folder: Path) -> _Move:
    """Paths below a folder as seen from there, others as they are: so that the folder may be moved."""

    def move(path: str) -> str:
        place = Path(path)
        return place.relative_to(folder).as_posix() if place.is_relative_to(folder) else path

    return move


def resolved_in(folder: Path) -> _Move:
    """The inverse: paths as seen from a folder, made absolute."""
    return lambda path: str(folder / path)

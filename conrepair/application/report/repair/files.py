"""The files that a repair made: the model, the patch, the recipe."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from conrepair.application.report.result import RepairedTarget
from conrepair.diagnosis.repairs.outcomes import PATCH, Advice
from conrepair.formats.models.identity import copy_model, model_sha256, place_model
from conrepair.ground.runtime.path_text import fitting_name

_ANEW = "anew"


def repair_files(repaired: RepairedTarget, folder: Path, place: Path) -> RepairedTarget:
    """Copy the repaired model, the patch and what it needs.

    Where something is left, a model that was made anew without the fault is kept beside them.

    Args:
        repaired: With its files where the repair made them.
        folder: Receives copies; it exists.
        place: Where that folder will be.

    Returns:
        The same with the files' places there.
    """
    result = repaired.result
    whole = result is not None and result.mended
    if result is not None and result.model is not None:
        path = Path(result.model.path)
        copy_model(path, folder / path.name)
        result = replace(result, model=replace(result.model, path=str(place / path.name)))
    if result is not None and result.patch is not None:
        from conrepair.diagnosis.repairs.patch import patch_files  # with the editors of all formats

        for file in patch_files(Path(result.patch)):
            shutil.copy2(file, folder / file.name)
        result = replace(result, patch=str(place / PATCH))
    advice = tuple(_kept(item, folder, place, wanted=not whole) for item in repaired.advice)
    return replace(repaired, result=result, advice=advice)


def made_anew(advice: Sequence[Advice]) -> str | None:
    """Name of the file in which a model is kept that another way made without the fault; None where there's none."""
    model = next((item.model for item in advice if item.model is not None), None)
    return None if model is None else fitting_name(f"{_ANEW}{Path(model.path).suffix}")


def _kept(item: Advice, folder: Path, place: Path, *, wanted: bool) -> Advice:
    """Advice with its model in the folder, where it's wanted, else without one."""
    name = made_anew([item])
    if item.model is None or name is None or not wanted:
        return replace(item, model=None)
    path = Path(item.model.path)
    place_model(path, folder / name)
    return replace(item, model=replace(item.model, path=str(place / name), sha256=model_sha256(folder / name)))

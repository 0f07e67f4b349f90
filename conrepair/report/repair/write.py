"""Write the files of a repair."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from conrepair.frameworks.identity import copy_model, model_sha256, place_model
from conrepair.localization.result import Localization
from conrepair.repairs.outcomes import Advice
from conrepair.repairs.patch import PATCH, patch_files
from conrepair.repairs.result import RepairResult
from conrepair.report.encode import encode
from conrepair.report.folders import check_replaceable
from conrepair.runtime.files import put_text, whole_output

__all__ = ["DOCUMENT", "advice_in", "check_repair_folder", "made_anew", "write_refusal", "write_repair"]

DOCUMENT = "repair.json"
_VERSION = 1
_ANEW = "anew"


def write_repair(
    result: RepairResult,
    folder: Path,
    advice: Sequence[Advice] = (),
    more: Callable[[RepairResult], Mapping[str, str]] = lambda _: {},
) -> RepairResult:
    """Write the repaired model, the recipe, patch.json and repair.json, all of them or none.

    Where something is left, a model that was made anew without the fault is kept beside them.

    Args:
        result: With its model and its patch on disk.
        folder: Appears whole; that of an earlier repair is replaced.
        advice: Other ways to convert.
        more: Other files, as texts by name, of what is returned.

    Returns:
        The result, with its files where they are then.

    Raises:
        StorageError: if it can't be written.
    """
    content = {"schema_version": _VERSION, "mended": result.mended, **encode(result), "advice": encode(advice)}
    model = result.model and replace(result.model, path=str(folder / Path(result.model.path).name))
    written = replace(result, model=model, patch=result.patch and str(folder / PATCH))
    with whole_output(folder) as temporary:
        temporary.mkdir()
        content |= {"advice": encode(_kept(advice, temporary, wanted=not result.mended))}
        if result.model is not None:
            path = Path(result.model.path)
            copy_model(path, temporary / path.name)
            content["model"]["path"] = path.name
        if result.patch is not None:
            for file in patch_files(Path(result.patch)):
                shutil.copy2(file, temporary / file.name)
            content["patch"] = PATCH
        put_text(temporary / DOCUMENT, json.dumps(content, indent=2) + "\n")
        for name, text in more(written).items():
            put_text(temporary / name, text)
    return written


def write_refusal(reason: str, before: Localization, folder: Path, advice: Sequence[Advice] = ()) -> None:
    """Write what is known where a repair couldn't be tried: repair.json, and a model made anew without the fault.

    Args:
        reason: Why not.
        before: The target as it came.
        folder: Appears whole; that of an earlier repair is replaced.
        advice: Other ways to convert.

    Raises:
        StorageError: if it can't be written.
    """
    content = {"schema_version": _VERSION, "mended": False, "reason": reason, "before": encode(before), "edits": []}
    with whole_output(folder) as temporary:
        temporary.mkdir()
        content["advice"] = encode(_kept(advice, temporary, wanted=True))
        put_text(temporary / DOCUMENT, json.dumps(content, indent=2) + "\n")


def made_anew(advice: Sequence[Advice]) -> str | None:
    """Name of the file in which a model is kept that another way made without the fault; None where there's none."""
    model = next((item.model for item in advice if item.model is not None), None)
    return None if model is None else f"{_ANEW}{Path(model.path).suffix}"


def advice_in(advice: Sequence[Advice], folder: Path, *, kept: bool) -> tuple[Advice, ...]:
    """Advice whose models are those that a repair's folder has; without one where it hasn't.

    Args:
        advice: As it was given when the folder was written.
        folder: Of the repair.
        kept: Whether it has any.
    """
    found = ((item, folder / (made_anew([item]) or "")) for item in advice)
    return tuple(
        replace(item, model=replace(item.model, path=str(file)) if item.model is not None and kept else None)
        for item, file in found
    )


def _kept(advice: Sequence[Advice], folder: Path, *, wanted: bool) -> list[Advice]:
    """Advice with its model in the folder, where it's wanted, else without one."""
    result = []
    for item in advice:
        model, name = item.model, made_anew([item])
        if model is not None and name is not None and wanted:
            place_model(Path(model.path), folder / name, Path(model.path), force=True)
            model = replace(model, path=name, sha256=model_sha256(folder / name))
        result.append(replace(item, model=model if wanted else None))
    return result


def check_repair_folder(folder: Path, inputs: Iterable[Path]) -> None:
    """Make sure that replacing a repair's folder loses nothing of the user's.

    Args:
        folder: Of the repair.
        inputs: Files and folders that it reads.

    Raises:
        UsageError: if the folder is something else than an earlier repair's, or holds an input.
    """
    check_replaceable(folder, DOCUMENT, "repair", inputs)

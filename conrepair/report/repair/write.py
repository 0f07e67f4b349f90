"""Write the files of a repair."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from conrepair.frameworks.identity import copy_model
from conrepair.repair.advice import Advice
from conrepair.repair.patch import PATCH, patch_files
from conrepair.repair.result import RepairResult
from conrepair.report.encode import encode
from conrepair.report.folders import check_replaceable
from conrepair.runtime.files import whole_output

__all__ = ["DOCUMENT", "check_repair_folder", "write_repair"]

DOCUMENT = "repair.json"
_VERSION = 1


def write_repair(result: RepairResult, folder: Path, advice: Sequence[Advice] = ()) -> RepairResult:
    """Write the repaired model, the recipe, patch.json and repair.json, all of them or none.

    Args:
        result: With its model and its patch on disk.
        folder: Appears whole; that of an earlier repair is replaced.
        advice: Other ways to convert.

    Returns:
        The result, with its files where they are then.

    Raises:
        StorageError: if it can't be written.
    """
    content = {"schema_version": _VERSION, "mended": result.mended, **encode(result), "advice": encode(advice)}
    with whole_output(folder) as temporary:
        temporary.mkdir()
        if result.model is not None:
            path = Path(result.model.path)
            copy_model(path, temporary / path.name)
            content["model"]["path"] = path.name
        if result.patch is not None:
            for file in patch_files(Path(result.patch)):
                shutil.copy2(file, temporary / file.name)
            content["patch"] = PATCH
        (temporary / DOCUMENT).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    model = result.model and replace(result.model, path=str(folder / Path(result.model.path).name))
    return replace(result, model=model, patch=result.patch and str(folder / PATCH))


def check_repair_folder(folder: Path, inputs: Iterable[Path]) -> None:
    """Make sure that replacing a repair's folder loses nothing of the user's.

    Args:
        folder: Of the repair.
        inputs: Files and folders that it reads.

    Raises:
        UsageError: if the folder is something else than an earlier repair's, or holds an input.
    """
    check_replaceable(folder, DOCUMENT, "repair", inputs)

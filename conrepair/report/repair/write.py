"""Write the files of a repair."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from conrepair.frameworks.identity import copy_model
from conrepair.repair.repair import PATCH
from conrepair.repair.result import RepairResult
from conrepair.report.encode import encode
from conrepair.runtime.errors import UsageError
from conrepair.runtime.files import whole_output

__all__ = ["DOCUMENT", "check_repair_folder", "write_repair"]

DOCUMENT = "repair.json"
_VERSION = 1


def write_repair(result: RepairResult, folder: Path) -> None:
    """Write the repaired model, patch.json and repair.json, all of them or none.

    Args:
        result: With a model on disk, the patch beside it.
        folder: Appears whole; that of an earlier repair is replaced.

    Raises:
        UsageError: if the folder is something else than an earlier repair's.
        StorageError: if it can't be written.
    """
    check_repair_folder(folder)
    content = {"schema_version": _VERSION, "mended": result.mended, **encode(result)}
    with whole_output(folder) as temporary:
        temporary.mkdir()
        if result.model is not None:
            path = Path(result.model.path)
            copy_model(path, temporary / path.name)
            for name in (PATCH, str(Path(PATCH).with_suffix(".npz"))):
                if (path.parent / name).exists():
                    shutil.copy2(path.parent / name, temporary / name)
            content["model"]["path"] = path.name
        (temporary / DOCUMENT).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def check_repair_folder(folder: Path) -> None:
    """Make sure that nothing but an earlier repair would be replaced.

    Raises:
        UsageError: if the folder holds anything else.
    """
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / DOCUMENT).is_file())):
        raise UsageError(f"{folder} is there already, and is no earlier repair's; choose another folder for -o.")

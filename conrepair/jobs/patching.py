"""The job that makes the edits of a patch again, in a copy of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conrepair.editors.operation import NotEditableError
from conrepair.frameworks.model import Model, from_json
from conrepair.repairs.patch import read_patch
from conrepair.repairs.repair import apply_patch
from conrepair.runtime.errors import DataError


def patch(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write the changed copy, and the recipe that the patch sets.

    Args:
        payload: "patch", its path; "model", which it's made in.
        folder: Receives them.

    Returns:
        "made", the copy's name; None where the patch changes nothing in the file.

    Raises:
        DataError: if the patch is for another model, or names what that hasn't.
    """
    path, model = Path(payload["patch"]), from_json(Model, payload["model"])
    found, wanted = read_patch(path)
    try:
        made = apply_patch(found, wanted, model, folder)
    except NotEditableError as error:
        raise DataError(f"{path} can't be applied to {model.path}: {error}") from error
    return {"made": None if made is None else Path(made.path).name}

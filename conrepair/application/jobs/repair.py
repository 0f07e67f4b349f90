"""The jobs that repair a target, and make the edits of a patch again."""

from __future__ import annotations

from pathlib import Path

from conrepair.application.jobs.description import of_what_stays
from conrepair.application.report.row_paths import placed, relative_to
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.build import repair_build
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.diagnosis.repairs.repair import apply_patch, repair_models
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.editing.operation import NotEditableError
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.journal import Journal
from conrepair.ground.runtime.handing_on import take
from conrepair.ground.runtime.shown.heartbeat import at_work, telling


@of_what_stays
def repair(
    folder: Path, source: FedModel, target: FedModel, options: RepairOptions, journal: Path, whose: str
) -> RepairResult:
    """Repair a target in its own format.

    Args:
        folder: Receives the repaired model and its patch; paths in the result are relative to it.
        source: The model that is right.
        target: The model in question.
        options: What it may take.
        journal: Folder that the search is kept in until it's finished.
        whose: Tells this run from others that have the journal.
    """
    kept, looked = Journal(journal, whose), take("repair")
    with telling(folder), at_work("repair"):
        if target.build is None:
            result = repair_models(source, target, folder, options, kept, looked=looked)
        else:
            result = repair_build(source, target, folder, options, kept)
    return placed(result, relative_to(folder))


def patch(folder: Path, patch: Path, model: Model) -> str | None:
    """Write the changed copy, and the recipe that the patch sets.

    Args:
        folder: Receives them.
        patch: The file.
        model: What it's made in.

    Returns:
        The copy's name; None where the patch changes nothing in the file.

    Raises:
        DataError: if the patch is for another model, or names what that hasn't.
    """
    found, wanted = read_patch(patch)
    try:
        made = apply_patch(found, wanted, model, folder)
    except NotEditableError as error:
        raise DataError(f"{patch} can't be applied to {model.path}: {error}") from error
    return None if made is None else Path(made.path).name

"""The folder of an audit: models, records of their runs, repairs, and what follows from the result."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

from conrepair.application.report.csv_text import csv_text
from conrepair.application.report.folder import write_folder
from conrepair.application.report.repair.files import repair_files
from conrepair.application.report.result import AuditResult, Build, Row
from conrepair.application.report.row_paths import RowFolders, placed
from conrepair.application.report.verdict_table import verdicts_markdown
from conrepair.formats.models.identity import copy_model
from conrepair.ground.runtime.files.outputs import Output
from conrepair.ground.runtime.files.store import RECORD
from conrepair.ground.runtime.files.whole import put_text
from conrepair.ground.runtime.path_text import FileNames
from conrepair.verdicts.evaluate.answers import Answer, as_scores, best_classes
from conrepair.verdicts.evaluate.run import Run

# The record of one run: what was answered to every input, as a table and in the classic text form.


def write_record(run: Run, names: tuple[str, ...], top_k: int, folder: Path) -> None:
    """Write `answers.csv` and, where the first output is scores of classes, one text file for every input.

    The table has a line for each input: its seconds, and the best classes with their scores. A text file has the best
    classes, one "label, score" a line, an empty line, and the seconds.

    Args:
        run: Its outputs.
        names: Of the samples.
        top_k: How many classes.
        folder: Exists already.
    """
    answers, files = _answers(run, top_k), FileNames()  # folders of the dataset become part of a file's name
    ranks = range(len(answers[0]) if answers else 0)
    columns = [f"{what}_{rank + 1}" for rank in ranks for what in ("class", "score")]
    rows = []
    for index, name in enumerate(names[: run.count]):
        seconds = f"{float(run.seconds[index]):.6f}"
        best = answers[index] if answers else ()
        rows.append([index, name, seconds, *(cell for answer in best for cell in answer)])
        if best:
            text = "\n".join([*(f"{label}, {score:.9g}" for label, score in best), "", seconds, ""])
            put_text(folder / f"{files.of(name, name.replace('/', '__'))}.txt", text)
    put_text(folder / "answers.csv", csv_text(["index", "input", "seconds", *columns], rows))


def _answers(run: Run, top_k: int) -> list[Answer]:
    """The ranking of the first output, when it's class scores; else none."""
    if not run.outputs or run.outputs[0].name in run.lengths:
        return []
    scores = as_scores(run.arrays[run.outputs[0].name])
    return [] if scores is None else best_classes(scores, top_k)


_TEXTS = {".py", ".ll", ".cl", ".cu", ".json"}


def write_audit(result: AuditResult, store: Path) -> AuditResult:
    """Write everything below `result.folder`, which replaces what an earlier run wrote there.

    Args:
        result: What to write.
        store: Folder of the content-addressed store; models that lie in it are copied out.

    Returns:
        The result, with its files where they are then.

    Raises:
        StorageError: if it can't be written.
    """

    def fill(temporary: Path) -> AuditResult:
        folders = RowFolders(result.rows)
        copies = _copied_models(result, store, temporary, folders)
        rows = (_filled(row, result, temporary, folders) for row in result.rows)
        moved = tuple(placed(row, lambda path: copies.get(path, path)) for row in rows)
        return dataclasses.replace(result, rows=moved)

    written = write_folder(result, fill)
    _so_far(result.folder).remove()
    return written


def write_so_far(result: AuditResult) -> None:
    """Write the verdicts of a list that isn't finished beside the folder that it will get.

    Args:
        result: Of the architectures that are done.

    Raises:
        StorageError: if it can't be written.
    """
    about = f"{len(result.architectures)} architectures so far. Started again, the audit goes on where it stopped."
    with _so_far(result.folder).write() as temporary:
        put_text(temporary, f"{verdicts_markdown(result)}\n{about}\n")


def _so_far(folder: Path) -> Output:
    return Output(folder.with_name(f"{folder.name}.unfinished.md"), "list of architectures", beside=True)


def _copied_models(result: AuditResult, store: Path, temporary: Path, folders: RowFolders) -> dict[str, str]:
    """Copy models that were made here; not of architectures, whose models were removed, nor what is the user's.

    Returns:
        Where each will be, by its path in the store.
    """
    copies: dict[str, str] = {}
    for row in result.rows:
        path = None if row.ran.artifact is None else Path(row.ran.artifact.path)
        folder = folders.model(row)
        if path is None or not path.is_relative_to(store) or not path.exists() or (temporary / folder).exists():
            continue
        (temporary / folder).mkdir(parents=True)
        copy_model(path, temporary / folder / path.name)
        copies.setdefault(str(path), str(result.folder / folder / path.name))
    return copies


def _filled(row: Row, result: AuditResult, temporary: Path, folders: RowFolders) -> Row:
    """Put what is a row's own into the folder: the record of its run, its repair, what can be read of its build."""
    if row.ran.run is not None:
        place = temporary / folders.run(row)
        place.mkdir(parents=True)
        write_record(row.ran.run, result.samples[result.datasets[row.model]], result.top_k, place)
    if row.repaired.result is not None:
        name = folders.repair(row)
        (temporary / name).mkdir(parents=True)
        row = dataclasses.replace(row, repaired=repair_files(row.repaired, temporary / name, result.folder / name))
    if row.ran.build is not None and (files := _build_texts(row.ran.build)):
        name = f"{folders.run(row)}/build"
        for file in files:
            copy = temporary / name / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(row.ran.build.folder / file, copy)
        build = dataclasses.replace(row.ran.build, folder=result.folder / name)
        row = dataclasses.replace(row, ran=dataclasses.replace(row.ran, build=build))
    return row


def _build_texts(build: Build) -> list[Path]:
    """What can be read of a build, relative to its folder: Relax, generated code, what is said of both."""
    files = (path for path in sorted(build.folder.rglob("*")) if path.suffix in _TEXTS and path.name != RECORD)
    return [path.relative_to(build.folder) for path in files]

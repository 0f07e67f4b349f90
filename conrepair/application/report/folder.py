"""The folder that a run leaves: its document, files that were made, and the texts that follow from the document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from conrepair.application.report.result import AuditResult
from conrepair.application.report.saved import DOCUMENT, PAGE, has_page, result_text
from conrepair.ground.runtime.files.outputs import Output, place_in
from conrepair.ground.runtime.files.whole import put_text

_SORTS = {
    "audit": "audit",
    "compare": "comparison",
    "convert": "conversion",
    "execute": "run",
    "localize": "localization",
    "repair": "repair",
}


def check_folder(folder: Path, kind: str, inputs: Iterable[str | Path] = ()) -> None:
    """Make sure that replacing a folder loses nothing of the user's.

    Args:
        folder: Where the run's files will be.
        kind: Of the run, as `AuditResult.kind`: a folder of another kind isn't replaced.
        inputs: Files and folders that are read.

    Raises:
        UsageError: if the folder is something else than an earlier one's, was changed since, or holds an input.
        StorageError: if it can't be looked into.
    """
    run_output(folder, kind).check(inputs=inputs)


def run_output(folder: Path, kind: str) -> Output:
    """The folder of a run, as what is written to a person's disk.

    Args:
        folder: Where it shall stand.
        kind: Of the run, as `AuditResult.kind`.
    """
    return Output(folder, _SORTS[kind])


def pages_of(result: AuditResult, photos: Sequence[Path] | None = None) -> dict[str, str]:
    """The page, of kinds of runs that have one, by its path in the folder.

    Args:
        result: Of any verb, or of an audit.
        photos: Folders that are looked into for photos; None: those of the configuration.
    """
    if not has_page(result):
        return {}
    from conrepair.application.report.page.page import page_html  # Jinja2 takes a while to import

    return {PAGE: page_html(result, photos)}


def write_folder(
    result: AuditResult, fill: Callable[[Path], AuditResult], photos: Sequence[Path] | None = None
) -> AuditResult:
    """Write all of a run; the folder appears whole, and replaces an earlier one, in which all else stays.

    Args:
        result: Whose `folder` is written. Its models are read where they are now.
        fill: Puts files that the run made into the folder that it's given, and returns the result with their places
            in `result.folder`.
        photos: As of `pages_of`.

    Returns:
        What `fill` returned.

    Raises:
        StorageError: if it can't be written.
    """
    from conrepair.application.report.texts import texts_of  # what only shows a result needs none of them

    with run_output(result.folder, result.kind).write() as temporary:
        temporary.mkdir()
        placed = fill(temporary)
        for name, text in {**texts_of(result, placed), **pages_of(placed, photos)}.items():
            file = place_in(temporary, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            put_text(file, text)
        put_text(temporary / DOCUMENT, f"{result_text(placed)}\n")
    return placed

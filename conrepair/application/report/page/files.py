"""Links to the files beside the page, as paths from there: the folder may be moved, and asks nothing of a network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath
from urllib.parse import quote

from conrepair.application.report.backend_matrix import matrices
from conrepair.application.report.causes import repaired_files
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.row_paths import RowFolders

_ALWAYS = {
    "result.json": "all of this, for programs",
    "summary.md": "for a pull request",
    "junit.xml": "for CI",
    "results.sarif": "for code scanning",
}
_OF_AUDIT = {
    "summary.txt": "what the console said",
    "comparisons.csv": "each output of each comparison",
    "execution_log.txt": "each run with its times",
}
_OF_LAYERS = {"layers.csv": "all layers", "inputs.csv": "all inputs"}


@dataclass(frozen=True)
class Link:
    """A file.

    Attributes:
        name: Its path from the page.
        about: What it holds, in words.
    """

    name: str
    about: str = ""

    @property
    def href(self) -> str:
        """The path as a link: no letter of it is taken for a scheme, a query or a fragment."""
        return quote(self.name)


def run_files(result: AuditResult) -> list[Link]:
    """Files of the whole run.

    Args:
        result: Of any verb, or of an audit.
    """
    known = dict(_ALWAYS)
    if result.kind in {"audit", "compare"}:
        known |= _OF_AUDIT | ({"backends.csv": "backends against one another"} if matrices(result) else {})
    if result.kind == "localize":
        known |= _OF_LAYERS
    if result.architectures:
        known |= dict.fromkeys(("verdicts.md", "verdicts.csv"), "each architecture by its routes")
    return [Link(name, about) for name, about in known.items()]


def row_files(row: Row, result: AuditResult, folders: RowFolders) -> list[Link]:
    """Files of one target: the model if it was made here, what it computed, its layers, its repair, what failed.

    Args:
        row: Of the run.
        result: The run.
        folders: Its folders.
    """
    if result.kind != "audit":
        return []
    links, model = [Link(name, "repaired") for name in repaired_files(row, folders)], row.ran.artifact
    if model is not None and Path(model.path).is_relative_to(result.folder):
        links.append(Link(PurePath(model.path).relative_to(result.folder).as_posix(), "as it came"))
    if row.ran.run is not None:
        links.append(Link(f"{folders.run(row)}/answers.csv", "outputs"))
    if row.inputs:
        links.append(Link(f"{folders.run(row)}/inputs.csv", "inputs that differ most"))
    links += [
        Link(f"{folders.localization(row, place)}/layers.csv", "layers") for place in range(len(row.localized.steps))
    ]
    if any((row.problem, row.localized.problem, row.repaired.problem)):
        links.append(Link(folders.error(row), "what failed"))
    return links

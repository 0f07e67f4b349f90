"""A finding's folder: the case, what's known of it, a program that shows it, and text for an issue."""

from __future__ import annotations

import json
from pathlib import Path

from conrepair.cases.case import Array, Case, written
from conrepair.frameworks.model import from_json
from conrepair.fuzz.finding import VERSION, Finding
from conrepair.report.encode import encode
from conrepair.report.fuzz.issue_text import issue_text
from conrepair.report.fuzz.reproducer import reproducer
from conrepair.report.fuzz.summary import Summary
from conrepair.report.page.rendering import rendered
from conrepair.runtime.errors import DataError
from conrepair.runtime.files import put_text, write_json
from conrepair.runtime.json_file import read_json_text, value_of
from conrepair.runtime.outputs import Output
from conrepair.runtime.standing import Standing

__all__ = [
    "FINDING",
    "FINDINGS",
    "ISSUE",
    "PAGE",
    "REPRODUCE",
    "campaign_output",
    "findings_page",
    "read_finding",
    "write_campaign",
    "write_finding",
]

FINDINGS, PAGE = "findings.json", "findings.html"
"""Of a campaign."""

FINDING, REPRODUCE, ISSUE = "finding.json", "reproduce.py", "issue.md"


def write_finding(finding: Finding, case: Case, programmed: Path, right: Array | None, folder: Path) -> Path:
    """Write a finding; its folder appears whole.

    Args:
        finding: Which.
        case: That shows it.
        programmed: What the system's programs begin with.
        right: The output as it should be, as far as shape and type go.
        folder: Receives a folder of its name, which is returned.
    """
    output = Output(folder / finding.name, "finding")
    output.check()
    with output.write() as made:
        written(case, made)
        write_json(made / FINDING, {"schema_version": VERSION, **encode(finding)})
        put_text(made / REPRODUCE, reproducer(finding, case, programmed, right))
        put_text(made / ISSUE, issue_text(finding, case))
    return output.path


def read_finding(folder: Path) -> Finding:
    """Read what was written; it may come from anybody, and nothing in it is run.

    Raises:
        DataError: if it's no finding.
    """
    path = folder / FINDING
    try:
        told = value_of(read_json_text(path))
        version = told.pop("schema_version")
        if version != VERSION:
            raise DataError(f"{path} is of version {version!r}; {VERSION} can be read. Use a later release.")
        found = from_json(Finding, told)
        _ = found.title  # of a kind that there is
    except (OSError, ValueError, KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise DataError(f"{path} is no finding: {error}. Copy the whole folder again.") from error
    return found


def campaign_output(folder: Path) -> Output:
    """A campaign's folder, as what is written among a person's files."""
    return Output(folder, "campaign", shared=True)


def write_campaign(summary: Summary, folder: Path, *, live: bool = False, standing: Standing | None = None) -> None:
    """Write what a campaign came to, in its folder.

    Args:
        summary: What.
        folder: Of the campaign.
        live: Whether it goes on: the page loads itself anew.
        standing: How far it is on other machines.

    Raises:
        StorageError: if it can't be written.
    """
    with campaign_output(folder).add() as made:
        write_json(made / FINDINGS, {"schema_version": VERSION, **encode(summary)})
        put_text(made / PAGE, findings_page(summary, live=live, standing=standing))


def findings_page(summary: Summary, *, live: bool = False, standing: Standing | None = None) -> str:
    """findings.html: self-contained, without scripts, everything escaped.

    Args:
        summary: Of a campaign.
        live: Whether the campaign goes on: the page loads itself anew.
        standing: How far it is on other machines.
    """
    part = None if standing is None else rendered("part_standing.html", standing=standing)
    return rendered("findings.html", summary=summary, live=live, standing=part) + "\n"

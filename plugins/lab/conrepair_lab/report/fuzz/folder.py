"""A finding's folder: the case, what's known of it, a program that shows it, and text for an issue."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from conrepair.application.report.encode import encode
from conrepair.application.report.page.rendering import rendered
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.runtime.files.outputs import Output
from conrepair.ground.runtime.files.whole import put_text, write_json, write_text
from conrepair.ground.runtime.shown.standing import Standing
from conrepair.ground.runtime.typed import typed
from conrepair.ground.runtime.words import counted, number
from conrepair_lab.cases.case import Case, read, written
from conrepair_lab.cases.sizes import SIZES
from conrepair_lab.fuzz.finding import VERSION, Finding
from conrepair_lab.fuzz.known import Known
from conrepair_lab.fuzz.suspicion import THREADS, Suspicion
from conrepair_lab.report.fuzz.document import LARGE, SEVERITIES, begun, document, feed, roots, severity, thread
from conrepair_lab.report.fuzz.reproducer import model_text
from conrepair_lab.report.fuzz.summary import Summary

_TOLERANCES = {"NumPy's default": (1e-5, 1e-8), "what maintainers usually ask of float32": LARGE}
_MOST = 40  # lines of a network's text


def issue_text(finding: Finding, case: Case) -> str:
    """Text for an issue, as maintainers ask for it: what, with which versions, expected, how to see it, and why.

    Args:
        finding: Which.
        case: Its case.
    """
    suspicion, cause = finding.suspicion, finding.cause
    parts = [f"# {finding.title}", "", _what(finding), ""]
    parts += [f"Versions: {_listed(finding.versions)}.", "", "To see it: `python reproduce.py`", ""]
    for ran in finding.shown:
        parts += [f"That program was run {ran.words}. It says:", "", textwrap.indent(ran.printed, "    "), ""]
    if finding.since is not None:
        parts += [f"Releases: {finding.since.words}.", ""]
    text = model_text(case.model)
    if text and text.count("\n") <= _MOST:
        parts += ["```", text.strip(), "```", ""]
    if suspicion.numbers is not None and suspicion.allowed is not None:
        parts += [
            f"At element {list(suspicion.index)} of `{suspicion.output}`:",
            "",
            f"- given: {suspicion.given!r}",
            f"- {_by(suspicion)}: {suspicion.exact!r}",
            f"- error: {number(abs(suspicion.numbers[0] - suspicion.numbers[1]))}",
            f"- rounding error in the network's own type: at most {number(suspicion.allowed)}",
            *(f"- {words}" for words in _beyond(*suspicion.numbers)),
            "",
        ]
    if suspicion.stage == SIZES:
        sizes = ", ".join(f"{name} = {size}" for name, size in case.options.get(SIZES, {}).items())
        told = f"the second run of the same build is wrong, with other sizes ({sizes}); the first run is right."
        parts += [f"It happens when sizes change: {told}", ""]
    parts += [f"Judged by: {finding.judges}. It happens in each run.", ""]
    if cause.plainly:
        parts += ["It happens with optimizations off, too.", ""]
    for found in cause.causes:
        parts += [f"It happens only with: {', '.join(f'`{name}`' for name in found)}", ""]
    if cause.lines:
        parts += ["Workaround:", "", "```python", *cause.lines, "```", ""]
    nodes = counted(len(finding.operators), "node")
    least = "none can be left out" if finding.smallest else "some can perhaps be left out"
    parts += [f"The network has {nodes}; {least}. First seen in: {finding.source}.", ""]
    return "\n".join(parts)


def _by(suspicion: Suspicion) -> str:
    if suspicion.kind == THREADS:
        return "with another number of threads"
    if suspicion.kind == "differs":
        return "by ONNX Runtime without optimizations"
    return "exactly" if isinstance(suspicion.exact, int) else "in float64"


def _what(finding: Finding) -> str:
    words = finding.suspicion.message.replace("`", "'")
    return f"{_listed(finding.blamed) or finding.system}: {words}"


def _beyond(given: float, exact: float) -> list[str]:
    """Whether usual tolerances see it."""
    found = []
    for name, (relative, absolute) in _TOLERANCES.items():
        seen = not abs(given - exact) <= absolute + relative * abs(exact)
        found.append(f"rtol {relative:g}, atol {absolute:g} ({name}): {'fails' if seen else 'passes'}")
    return found


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


FINDINGS, PAGE, DOCUMENT, FEED = "findings.json", "findings.html", "findings.md", "feed.json"
"""Of a campaign."""

FINDING, REPRODUCE, ISSUE = "finding.json", "reproduce.py", "issue.md"


def write_finding(finding: Finding, case: Case, program: str, folder: Path) -> Path:
    """Write a finding; its folder appears whole.

    Args:
        finding: Which.
        case: That shows it.
        program: That shows it without conrepair.
        folder: Receives a folder of its name, which is returned.
    """
    output = Output(folder / finding.name, "finding")
    output.check()
    with output.write() as made:
        written(case, made)
        write_json(made / FINDING, {"schema_version": VERSION, **encode(finding)})
        put_text(made / REPRODUCE, program)
        put_text(made / ISSUE, issue_text(finding, case))
    return output.path


def tell(finding: Finding, folder: Path) -> None:
    """Write what is known of a finding by now, where it lies.

    Args:
        finding: Which.
        folder: Its own.

    Raises:
        StorageError: if it can't be written.
    """
    write_json(folder / FINDING, {"schema_version": VERSION, **encode(finding)})
    write_text(folder / ISSUE, issue_text(finding, read(folder)))


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
        found = typed(Finding, told)
        _ = found.title  # of a kind that there is
    except (OSError, ValueError, KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise DataError(f"{path} is no finding: {error}. Copy the whole folder again.") from error
    return found


def campaign_output(folder: Path) -> Output:
    """A campaign's folder, as what is written among a person's files."""
    return Output(folder, "campaign")


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
    with campaign_output(folder).write(parts=True) as made:
        write_json(made / FINDINGS, {"schema_version": VERSION, **encode(summary)})
        put_text(made / PAGE, findings_page(summary, live=live, standing=standing))
        put_text(made / DOCUMENT, f"# Findings\n\n{document(summary.findings, Known(), 'findings')}")
        write_json(made / FEED, feed(summary.findings, _dates(folder)))


def _dates(folder: Path) -> dict[str, str]:
    """When the findings of a campaign were made: nothing writes their programs again."""
    programs = sorted((folder / "findings").glob(f"*/{REPRODUCE}"))
    times = {path.parent.name: datetime.fromtimestamp(int(path.stat().st_mtime), UTC) for path in programs}
    return {name: time.isoformat() for name, time in times.items()}


def findings_page(summary: Summary, *, live: bool = False, standing: Standing | None = None) -> str:
    """findings.html: self-contained, without scripts, everything escaped.

    Args:
        summary: Of a campaign.
        live: Whether the campaign goes on: the page loads itself anew.
        standing: How far it is on other machines.
    """
    part = None if standing is None else rendered("part_standing.html", standing=standing)
    places = {item.name: SEVERITIES[severity(item)] for item in summary.findings}
    given = {"summary": summary, "roots": roots(summary.findings), "severities": places, "begun": begun}
    return rendered("findings.html", live=live, standing=part, thread=thread, **given) + "\n"

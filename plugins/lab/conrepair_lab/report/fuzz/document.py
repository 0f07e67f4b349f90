"""Findings as a maintainer reads them: by library, by root, the gravest first; as Markdown, and as a feed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conrepair.application.report.csv_text import plain
from conrepair.application.report.verdict_table import markdown_table
from conrepair.ground.runtime.words import counted, percent, shortened
from conrepair_lab.fuzz.finding import Finding
from conrepair_lab.fuzz.known import Known
from conrepair_lab.fuzz.suspicion import ENDS, SLOWER

SEVERITIES = ("silent and large", "crash or hang", "silent and small", "error", "slower")
"""The gravest first. Large is what exceeds the tolerances that maintainers usually ask of float32."""

LARGE = (1e-3, 1e-5)
"""Relative and absolute."""

_ONE = {"Acosh", "Asinh", "Atanh", "Celu", "Elu", "Mish", "Selu", "Sinh", "Softplus", "Tanh"}
_SINGLE, _DOUBLE = 2.0**-21, 2.0**-44  # relative: what's lost by single precision, and what a double's bound is below
_SMALL, _WHOLE = 2.0**-6, 2**24
_LONGEST = 160
_COLUMNS = ("common root", "severity", "network", "what", "releases", "switches", "workaround", "thread")


def severity(finding: Finding) -> int:
    """The place in `SEVERITIES`."""
    seen = finding.suspicion
    if seen.kind in {"exception", SLOWER}:
        return 4 if seen.kind == SLOWER else 3
    if seen.kind in ENDS:
        return 1
    if seen.numbers is None:
        return 0
    given, exact = seen.numbers
    relative, absolute = LARGE
    return 2 if abs(given - exact) <= absolute + relative * abs(exact) else 0


def root(finding: Finding) -> str:
    """What is done wrong, in words that findings of one root share."""
    seen = finding.suspicion
    if seen.kind == "exception":
        return f"{seen.error}: {seen.words_without(finding.operators).partition('. ')[0]}"
    if finding.cause.causes:
        return f"by {' or '.join(' with '.join(names) for names in finding.cause.causes)}"
    if seen.kind == "numbers" and seen.numbers is not None and seen.allowed is not None:
        given, exact = seen.numbers
        off, size = abs(given - exact), abs(exact)
        if off <= _SINGLE < _SMALL and size < _SMALL and off > seen.allowed:
            if _ONE & set(finding.operators):
                return (
                    "e^x - 1 or log(1 + x) is written plainly: near zero, digits are lost that expm1 and log1p keep"
                )
            return "a small result is what is left of numbers near 1"
        if isinstance(exact, int) and size > _WHOLE and off <= size * _SINGLE:
            return "large whole numbers go through floating point"
        if seen.allowed < size * _DOUBLE and off <= size * _SINGLE:
            return "double precision is computed in single precision"
    return f"{finding.what} for {', '.join(dict.fromkeys(finding.operators))}"


@dataclass(frozen=True)
class Root:
    """Findings of a library that have one root.

    Attributes:
        library: With its version; several where the fault lies between them.
        words: The root.
        findings: The gravest first.
    """

    library: str
    words: str
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> str:
        """That of its gravest finding."""
        return SEVERITIES[severity(self.findings[0])]


def roots(findings: Iterable[Finding]) -> list[Root]:
    """Findings by library and root: libraries in order, and of each the gravest root first.

    Args:
        findings: Any.
    """
    grouped: dict[tuple[str, str], list[Finding]] = {}
    for item in findings:
        grouped.setdefault((_library(item), root(item)), []).append(item)
    found = [Root(*key, tuple(sorted(items, key=_grave))) for key, items in grouped.items()]
    return sorted(found, key=lambda item: (item.library, severity(item.findings[0]), -len(item.findings), item.words))


def _grave(finding: Finding) -> tuple[int, float, str]:
    return severity(finding), -(finding.suspicion.over or 0.0), finding.name


def _library(finding: Finding) -> str:
    return ", ".join(f"{name} {version}" for name, version in finding.blamed.items()) or finding.system


def begun(finding: Finding) -> str:
    """In which release it began, or how to ask."""
    return "not asked (`--recheck --releases 5`)" if finding.since is None else finding.since.words


def thread(finding: Finding, known: Known = Known()) -> str:  # noqa: B008 (it's frozen)
    """Where it has been reported, or what was searched for that, and when.

    Args:
        finding: Any.
        known: The list that says so.
    """
    return known.of(finding) or finding.known or "no tracker has been searched for it yet"


def document(findings: Sequence[Finding], known: Known, folders: str) -> str:
    """Findings as Markdown.

    Args:
        findings: Any.
        known: What people say of them.
        folders: Of their folders, from where the document lies.
    """
    counts = [sum(severity(item) == place for item in findings) for place in range(len(SEVERITIES))]
    told = [f"{count} {words}" for count, words in zip(counts, SEVERITIES, strict=True) if count]
    lines = [f"{counted(len(findings), 'finding')}: {', '.join(told)}."] if findings else ["No fault was found."]
    for library, group in itertools.groupby(roots(findings), key=lambda item: item.library):
        lines += ["", f"## {plain(library)}"]
        rows = [
            [plain(item.words) if len(item.findings) > 1 else "", *_row(finding, known, folders)]
            for item in group
            for finding in item.findings
        ]
        lines += ["", *markdown_table(_COLUMNS, rows)]
    return "\n".join(lines) + "\n"


def _row(finding: Finding, known: Known, folders: str) -> list[str]:
    cause, entry = finding.cause, known.entry(finding)
    switches = "; ".join(" + ".join(item) for item in cause.causes)
    if cause.plainly:
        switches = "none: without optimizations, too"
    words = shortened(" ".join(finding.suspicion.message.split()), _LONGEST)
    fails = [f"its program: {item.words}" for item in finding.shown if not item.release and item.verdict != "there"]
    lines = " ".join(f"`{plain(line)}`" for line in cause.lines)
    seen = ", ".join([finding.entry, *finding.also])
    return [
        plain(_size(finding)),
        f"[{plain(', '.join(finding.operators))}]({folders}/{finding.name}/issue.md) by {plain(seen)}",
        plain("; ".join([(entry.what if entry else "") or words, *fails])),
        plain(begun(finding)).replace("\\`", "`"),
        plain(switches),
        lines or (entry.workaround if entry else ""),
        thread(finding, known),
    ]


def _size(finding: Finding) -> str:
    numbers = finding.suspicion.numbers
    if numbers is None or not numbers[1] or severity(finding) == SEVERITIES.index("slower"):
        return SEVERITIES[severity(finding)]
    off = abs(numbers[0] - numbers[1]) / abs(numbers[1])
    return f"{SEVERITIES[severity(finding)]} ({percent(off)} off)"


def feed(findings: Sequence[Finding], dates: Mapping[str, str]) -> dict[str, Any]:
    """Findings as a JSON Feed, the gravest first.

    Args:
        findings: Any.
        dates: When each was written, by name.
    """
    return {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "Findings of conrepair fuzz",
        "items": list(_items(sorted(findings, key=_grave), dates)),
    }


def _items(findings: Iterable[Finding], dates: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for item in findings:
        words = [
            item.suspicion.message,
            f"Root: {root(item)}.",
            f"Releases: {begun(item)}.",
            f"Thread: {thread(item)}.",
        ]
        yield {
            "id": item.key,
            "title": item.title,
            "content_text": "\n".join(words),
            "tags": [SEVERITIES[severity(item)], *item.blamed],
            "url": f"findings/{item.name}/issue.md",
            **({"date_published": dates[item.name]} if item.name in dates else {}),
        }

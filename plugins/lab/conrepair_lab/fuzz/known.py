"""Findings that are known: a baseline that people edit and share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pydantic

from conrepair.ground.runtime.files import baseline
from conrepair.ground.runtime.files.baseline import NO_REASON, read_baseline, write_baseline
from conrepair_lab.fuzz.finding import Finding


def _compiled(text: str) -> str:
    re.compile(text)
    return text


class KnownFinding(baseline.Known):
    """An entry of the list: all that it says must be true of a finding.

    Attributes:
        key: Of a finding.
        system: Its system ("ort"), or that with a setting.
        kind: "numbers", "exception", ...
        operators: All of them are in it.
        message: A regular expression that its message matches.
        what: What's wrong, in words of who looked at it.
        workaround: What to do until it's mended.
    """

    key: str = ""
    system: str = ""
    kind: str = ""
    operators: list[str] = pydantic.Field(default_factory=list)
    message: Annotated[str, pydantic.AfterValidator(_compiled)] = ""
    what: str = ""
    workaround: str = ""

    def holds(self, finding: Finding) -> bool:
        """Whether a finding is this one."""
        return (
            self.key in {"", finding.key}
            and self.system in {"", finding.system, finding.entry}
            and self.kind in {"", finding.suspicion.kind}
            and set(self.operators) <= set(finding.operators)
            and re.search(self.message, finding.suspicion.message) is not None
        )


@dataclass(frozen=True)
class Known:
    """The list of known findings."""

    findings: tuple[KnownFinding, ...] = ()

    def entry(self, finding: Finding) -> KnownFinding | None:
        """The first entry that a finding is."""
        return next((item for item in self.findings if item.holds(finding)), None)

    def of(self, finding: Finding) -> str:
        """Where a finding is known from; "" where it isn't."""
        found = self.entry(finding)
        return "" if found is None else found.where


def read_known(path: Path) -> Known:
    """Read a list: a JSON array of objects.

    Raises:
        UsageError: if it's none.
    """
    return Known(read_baseline(path, KnownFinding))


def add_known(path: Path, fresh: Iterable[Finding]) -> None:
    """Put findings into a list, which is made where there's none.

    Args:
        path: Of the list.
        fresh: Findings that aren't in it.
    """
    before = read_known(path).findings if path.exists() else ()
    new = (KnownFinding(where=NO_REASON, key=item.key, system=item.entry, kind=item.suspicion.kind) for item in fresh)
    write_baseline(path, [*before, *new])

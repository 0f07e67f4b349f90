"""Findings that are known: a list that people edit and share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pydantic

from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.laboratory.fuzz.finding import Finding


class KnownFinding(pydantic.BaseModel):
    """What is known; what isn't said may be anything.

    Attributes:
        where: An address, or words.
        key: Of a finding.
        system: Its system ("ort"), or that with a setting.
        kind: "numbers", "exception", ...
        operators: All of them are in it.
        message: A regular expression that its message matches.
    """

    model_config = pydantic.ConfigDict(extra="forbid", strict=True)

    where: Annotated[str, pydantic.Field(min_length=1)]
    key: str = ""
    system: str = ""
    kind: str = ""
    operators: list[str] = pydantic.Field(default_factory=list)
    message: str = ""

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
    """A list of them."""

    findings: tuple[KnownFinding, ...] = ()

    def of(self, finding: Finding) -> str:
        """Where a finding is known from; "" where it isn't."""
        return next((item.where for item in self.findings if item.holds(finding)), "")


def read_known(path: Path) -> Known:
    """Read a list: a JSON array of objects.

    Raises:
        UsageError: if it's none.
    """
    try:
        told = pydantic.TypeAdapter(list[KnownFinding]).validate_python(value_of(read_json_text(path)))
        for item in told:
            re.compile(item.message)
    except (OSError, ValueError, re.error) as error:
        raise UsageError(
            f"{path} is no list of known findings: {error}. It's a JSON array of objects with `where` and any of "
            "key, system, kind, operators, message (docs/fuzz.md)."
        ) from error
    return Known(tuple(told))

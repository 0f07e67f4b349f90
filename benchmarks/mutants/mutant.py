"""A mutant: a file of which one thing is written otherwise."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field

__all__ = ["Mutant", "mutant_of"]


@dataclass(frozen=True)
class Mutant:
    """A change of a file.

    Attributes:
        file: Path from the root of the repository.
        line: Number of the first line that is changed.
        operator: Whose change it is: cosmic-ray's name, or "by hand".
        before: The changed lines, without indentation.
        after: The same with the change.
        code: The whole file with the change.
    """

    file: str
    line: int
    operator: str
    before: str
    after: str
    code: str = field(repr=False, compare=False)

    @property
    def key(self) -> tuple[str, str, str]:
        """What it's known by, wherever the lines are."""
        return self.file, self.before, self.after

    @property
    def text(self) -> str:
        """For a person."""
        removed = "\n".join(f"  - {line}" for line in self.before.splitlines())
        added = "\n".join(f"  + {line}" for line in self.after.splitlines())
        return f"{self.file}:{self.line} ({self.operator})\n{removed}\n{added}"

    def row(self) -> dict[str, str | int]:
        """As JSON has it: without the file."""
        names = ("file", "line", "operator", "before", "after")
        return {name: getattr(self, name) for name in names}


def mutant_of(file: str, operator: str, source: str, changed: str) -> Mutant:
    """Describe a change.

    Args:
        file: Path from the root of the repository.
        operator: Whose change it is.
        source: The file as it is.
        changed: The file with the change.
    """
    ours, theirs = source.splitlines(), changed.splitlines()
    blocks = [
        code
        for code in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
        if code[0] != "equal"
    ]
    begin, end = blocks[0][1], blocks[-1][2]
    first, last = blocks[0][3], blocks[-1][4]
    return Mutant(file, begin + 1, operator, _stripped(ours[begin:end]), _stripped(theirs[first:last]), changed)


def _stripped(lines: list[str]) -> str:
    return "\n".join(line.strip() for line in lines)

"""A program that does with a library alone what a setting does."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

__all__ = ["Program"]


@dataclass(frozen=True)
class Program:
    """Python in two parts, so that a process that stays loads a model once.

    Attributes:
        load: Imports, and what makes a model that lies in the current folder ready to run.
        run: Reads `inputs.npz`, runs it, and writes `outputs.npz`, arrays by the names of the file.
        record: An expression: what a backend's `switches` ask of a model that's loaded, JSON-able.
    """

    load: str
    run: str
    record: str = "{}"

    @property
    def text(self) -> str:
        """All of it, one behind the other."""
        return self.load + self.run

    @property
    def module(self) -> str:
        """A module that loads the model when it's imported, says `record()`, and runs it by `run()`."""
        record = f"def record():\n    return {self.record}"
        return f"{self.load}\n\n{record}\n\n\ndef run():\n{textwrap.indent(self.run, '    ')}"

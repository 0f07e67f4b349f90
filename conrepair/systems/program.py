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
    """

    load: str
    run: str

    @property
    def text(self) -> str:
        """All of it, one behind the other."""
        return self.load + self.run

    @property
    def module(self) -> str:
        """A module that loads the model when it's imported, and runs it by `run()`."""
        return f"{self.load}\n\ndef run():\n{textwrap.indent(self.run, '    ')}"

"""A suspicion: the fault that an oracle sees in a trial."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

GRADIENT = "gradient"
"""A kind, and the stage of all that's seen when a network is differentiated."""

REFUSED = "refused"
"""A kind that is no fault, and a verdict: it's said that something isn't taken."""

ENDS = frozenset({"crash", "hang", "memory"})
"""Kinds that end a process."""

THREADS = "threads"
"""The same of what is seen with another number of threads."""

SLOWER = "slower"
"""The same of what takes longer than with most left out."""

REFUSAL = "refusal"
"""The stage of an exception that says something isn't taken, where the plain setting takes it."""

OF_RUNS = frozenset({"chance", "layout"})
"""Kinds that several runs show: memory that nobody wrote to may look like either."""

OF_NUMBERS = frozenset({"numbers", "not finite", "differs", GRADIENT})
"""Kinds that say which element is what, and what it should be."""

_QUOTED = re.compile(r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|`[^`]*`|<[^<>]*>")
_PATH = re.compile(r"(?:/[\w.+-]+)+")
_NUMBER = re.compile(r"0x[0-9a-f]+|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Za-z_]*#\w*")
_LONGEST = 160


@dataclass(frozen=True)
class Suspicion:
    """A fault that an oracle sees: its kind, stage, message and worst element.

    Attributes:
        kind: "exception", "crash", "hang", "memory", "numbers", "not finite", "shape", "type", "outputs", "chance"
            (not the same each time), "layout" (depends on how inputs lie in memory), "gradient" (a wrong one),
            "threads" (hangs on how many there are), "slower" (than with most left out), or "differs": from
            another system by more than rounding explains, where nobody computes exact values.
        stage: In which it was seen; "answers" of those, "sizes" where further ones of a build are wrong,
            "refusal" where optimizations alone make something of it that isn't taken.
        error: The exception's type, or the signal.
        message: The tool's words, or ours.
        place: File and function that raised it, as far as that's Python.
        output: In which it was seen; of gradients, the input.
        index: The worst element.
        given: What it is; a string of strings.
        exact: What it should be.
        allowed: How far a right answer may be from that.
        over: The error, divided by that.
    """

    kind: str
    stage: str
    error: str = ""
    message: str = ""
    place: str = ""
    output: str = ""
    index: tuple[int, ...] = field(default=(), compare=False)
    given: int | float | str | None = field(default=None, compare=False)
    exact: int | float | str | None = field(default=None, compare=False)
    allowed: float | None = field(default=None, compare=False)
    over: float | None = field(default=None, compare=False)

    def same(self, other: Suspicion | None) -> bool:
        """Whether another one is of the same kind and stage: what a reduction keeps, whatever the message is."""
        mine = self.kind, self.stage, self.error
        return other is not None and mine == (other.kind, other.stage, other.error)

    @property
    def numbers(self) -> tuple[float, float] | None:
        """What's given and what it should be, where both are numbers."""
        if isinstance(self.given, int | float) and isinstance(self.exact, int | float):
            return self.given, self.exact
        return None

    @property
    def of_gradients(self) -> bool:
        """Whether it's seen only when the network is differentiated."""
        return self.stage == GRADIENT

    def thrown(self, operators: Collection[str]) -> tuple[str, ...]:
        """What two exceptions are compared by: where they came from, and their message.

        Args:
            operators: Of the case, which aren't told.
        """
        return self.stage, self.error, self.words_without(operators), self.place

    def words_without(self, operators: Collection[str]) -> str:
        """The message without what changes from case to case: numbers, names in quotes, places, operators.

        Args:
            operators: Of the case: one function serves many.
        """
        message = self.message
        for name in sorted(operators, key=len, reverse=True):
            message = message.replace(name, "OPERATOR")
        plain = _NUMBER.sub("#", _PATH.sub("PATH", _QUOTED.sub("NAME", message)))
        return _NAME.sub("NAME", " ".join(plain.split()))[:_LONGEST]

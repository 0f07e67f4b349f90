"""One decision, made of something that's on either side of its edge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Decision"]


@dataclass(frozen=True)
class Decision:
    """What is decided of a value.

    Attributes:
        text: What is asked, with `{}` for the value.
        made: What is decided of a value.
        near: Values, mostly 0.7 and 1.4 times the edge: half and twice of what makes the edge lie beyond them.
    """

    text: str
    made: Callable[[float], object]
    near: Sequence[float]

    def answers(self) -> Iterator[tuple[str, str]]:
        """The questions, and what is decided."""
        for value in self.near:
            yield self.text.format(f"{value:.3g}"), str(self.made(value))

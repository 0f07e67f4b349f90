"""What was measured of a row, as values that every form writes in its own digits."""

from __future__ import annotations

import functools
import string
from dataclasses import dataclass
from typing import NamedTuple

from conrepair.application.report.result import Ran
from conrepair.ground.metrics.statistics import TimeStatistics
from conrepair.ground.runtime.words import number
from conrepair.verdicts.evaluate.compare import Comparison


class Share(NamedTuple):
    """So many of so many: `{answers}` is "3 of 20"."""

    part: int
    of: int

    def __str__(self) -> str:
        return f"{self.part} of {self.of}"


class Measure(float):
    """A number that has two digits, and words for what is none, where a text doesn't ask for others."""

    def __format__(self, digits: str) -> str:
        return super().__format__(digits) if digits else number(self)


class Milliseconds(float):
    """A time that has a digit behind the point, or two digits where it's less than 1, where nothing else is asked."""

    def __format__(self, digits: str) -> str:
        return super().__format__(digits or (".1f" if self >= 1 else ".2g"))


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of a row, by the names that forms have for them; None for what wasn't measured.

    Attributes:
        answers: That differ.
        low: Percent of all such inputs that are answered otherwise, at least (95 %).
        high: The same, at most.
        error: Relative L2 of the worst output.
        max_abs: Largest difference of an element of it.
        floor: Relative L2 that rounding explains there.
        accuracy: Labelled samples that are answered rightly.
        times: Per sample.
        milliseconds: Their median.
        guilty: Pairs of tensors where an error comes in, of those that were compared.
    """

    answers: Share | None = None
    low: float | None = None
    high: float | None = None
    error: Measure | None = None
    max_abs: Measure | None = None
    floor: Measure | None = None
    accuracy: Share | None = None
    times: TimeStatistics | None = None
    milliseconds: Milliseconds | None = None
    guilty: Share | None = None

    def told(self, words: str) -> str:
        """Words with figures in them, as `{error:.1e}`; "" where one of these wasn't measured."""
        known = {name: getattr(self, name) for name in _names(words)}
        return "" if None in known.values() else words.format_map(known)


@functools.cache
def _names(words: str) -> frozenset[str]:
    return frozenset(name.partition(".")[0] for _, name, _, _ in string.Formatter().parse(words) if name)


def figures_of(comparison: Comparison | None, ran: Ran | None = None) -> Figures:
    """What was measured.

    Args:
        comparison: With the reference; its worst output is told.
        ran: What was run.
    """
    worst, ran = None if comparison is None else comparison.worst, ran or Ran()
    answers = None if worst is None else worst.answers
    low, high = (None, None) if answers is None else (100 * share for share in answers.top1_interval)
    return Figures(
        answers=None if answers is None else Share(answers.top1_differs, answers.samples),
        low=low,
        high=high,
        error=None if worst is None else Measure(worst.error.relative_l2),
        max_abs=None if worst is None else Measure(worst.error.max_abs),
        floor=None if worst is None else Measure(worst.floor),
        accuracy=None if ran.accuracy is None else Share(*ran.accuracy),
        times=ran.times,
        milliseconds=None if ran.times is None else Milliseconds(1000 * ran.times.median),
    )

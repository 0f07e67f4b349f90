"""What was measured of a row, as values that every form writes in its own digits, and as a sentence."""

from __future__ import annotations

import functools
import math
import string
from dataclasses import dataclass
from typing import NamedTuple

from conrepair.application.report.result import Ran
from conrepair.ground.metrics.statistics import TimeStatistics
from conrepair.ground.runtime.words import number, percent
from conrepair.verdicts.evaluate.compare import Comparison, OutputComparison
from conrepair.verdicts.evaluate.verdict import Verdict

_MUCH = 10.0  # times the rounding error, from which on they're told


class Share(NamedTuple):
    """So many of so many: `{answers}` is "3 of 20"."""

    part: int
    of: int

    def __str__(self) -> str:
        return f"{self.part} of {self.of}"


class Measure(float):
    """A relative error, in per cent where a text doesn't ask for a number of digits."""

    def __format__(self, digits: str) -> str:
        return super().__format__(digits) if digits else percent(self)


class Amount(float):
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
        answers: Predictions (top-1) that differ.
        low: Percent of all such inputs whose predictions differ, at least (95 %).
        high: The same, at most.
        error: Relative L2 of the worst output.
        max_abs: Largest difference of an element of it.
        floor: Rounding error there, relative L2 at most.
        accuracy: Labelled samples whose predictions are right.
        times: Per sample.
        milliseconds: Their median.
    """

    answers: Share | None = None
    low: float | None = None
    high: float | None = None
    error: Measure | None = None
    max_abs: Amount | None = None
    floor: Measure | None = None
    accuracy: Share | None = None
    times: TimeStatistics | None = None
    milliseconds: Milliseconds | None = None

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
        max_abs=None if worst is None else Amount(worst.error.max_abs),
        floor=None if worst is None else Measure(worst.floor),
        accuracy=None if ran.accuracy is None else Share(*ran.accuracy),
        times=ran.times,
        milliseconds=None if ran.times is None else Milliseconds(1000 * ran.times.median),
    )


def in_a_sentence(comparison: Comparison | None) -> str:
    """What a comparison measured: "Predictions: all 32 the same. Outputs: off by 0.5 %, within tolerance.".

    Args:
        comparison: With the reference; "" where no outputs were compared.
    """
    worst = None if comparison is None else comparison.worst
    if comparison is None or worst is None:
        return ""
    told, answers = "", worst.answers
    if answers is not None:
        same = f"all {answers.samples} the same"
        differ = f"{answers.top1_differs} of {answers.samples} differ"
        told = f"Predictions: {differ if answers.top1_differs else same}. "
    name = worst.pair.reference
    which = (
        "Outputs:"
        if len(comparison.outputs) == 1
        else f"Outputs: the worst of {len(comparison.outputs)}, `{name}`, is"
    )
    return f"{told}{which} {_off(worst)}."


def off_by(error: float) -> str:
    """A relative error of outputs as part of a sentence: "off by 0.5 %"."""
    told = percent(error).replace("below", "less than")
    return f"off by {told} their size" if told.endswith("times") else f"off by {told}"


def _off(output: OutputComparison) -> str:
    """By how much an output is off, and how that compares with what's allowed."""
    error, floor = output.error.relative_l2, output.floor
    if not error and not output.error.mismatched:
        return "the same"
    off = off_by(error)
    if output.verdict is Verdict.QUANTIZED:
        return f"{off}, within what quantization is allowed"
    if output.verdict is Verdict.NOISE or error <= floor:
        return f"{off}, within rounding error" if output.verdict.is_right else off
    if output.verdict is Verdict.EQUIVALENT:
        return f"{off}, within tolerance"
    times = error / floor if floor else math.inf
    return f"{off}, {percent(times)} more than rounding" if _MUCH <= times < math.inf else off

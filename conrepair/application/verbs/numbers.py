"""Numbers of a command line: what isn't one, or is out of bounds, is said in words."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable

from conrepair.ground.runtime.bounds import MOST_GIGABYTES, MOST_SAMPLES, MOST_SECONDS, MOST_SEED
from conrepair.ground.runtime.words import shortened

_MOST = 1_000_000
_WHOLE = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_SHOWN = 40


def whole(least: int, most: int = _MOST, why: str = "") -> Callable[[str], int]:
    """A whole number's reader; `why` there's a bound ends its sentence."""

    def read(text: str) -> int:
        if not _WHOLE.fullmatch(text.strip()):
            raise argparse.ArgumentTypeError(f"{shortened(text, _SHOWN)} isn't a whole number{_range(least, most)}")
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{value:,} isn't{_range(least, most)}{why}")
        return value

    return read


def _range(least: float, most: float) -> str:
    return f" from {least:,} to {most:,}"


count = whole(1)
samples = whole(1, MOST_SAMPLES, ": each runs through every model, and its outputs are held in memory")
seed = whole(0, MOST_SEED)


def real(text: str) -> float:
    """A number that is finite.

    Raises:
        ArgumentTypeError: if it's none.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{shortened(text, _SHOWN)} isn't a finite number")
    return value


def _limit(most: float, words: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = real(text)
        if not 0 <= value <= most:
            raise argparse.ArgumentTypeError(f"{value:g} isn't {words}")
        return value

    return read


share = _limit(1, "a share, from 0 to 1")
seconds = _limit(MOST_SECONDS, f"from 0 to {MOST_SECONDS:g} seconds")
gigabytes = _limit(MOST_GIGABYTES, f"from 0 to {MOST_GIGABYTES:,} gigabytes")

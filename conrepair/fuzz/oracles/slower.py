"""Optimizations that make it slower."""

from __future__ import annotations

from collections.abc import Iterator

from conrepair.fuzz.suspicion import SLOWER, Suspicion

__all__ = ["slower"]

_TIMES = 2.0
_LEAST = 1e-4  # seconds: less is what calls take, whatever they compute


def slower(seconds: float, plain: float) -> Iterator[Suspicion]:
    """Suspect what takes more than twice as long as with most left out.

    Args:
        seconds: Of a run.
        plain: Of one with most left out.
    """
    if seconds > _TIMES * plain and seconds - plain > _LEAST:
        words = f"a run takes {seconds:.3g} s, and {plain:.3g} s with most left out"
        yield Suspicion(SLOWER, SLOWER, message=words, given=seconds, exact=plain)

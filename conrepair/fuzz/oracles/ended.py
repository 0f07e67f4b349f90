"""A trial that ended without an answer: an exception, a crash, no end, no memory."""

from __future__ import annotations

from collections.abc import Iterator

from conrepair.fuzz.suspicion import Suspicion
from conrepair.fuzz.trial import Trial

__all__ = ["ended"]


def ended(trial: Trial) -> Iterator[Suspicion]:
    """Suspect all ends but a refusal: what a system says it doesn't take is no fault.

    Args:
        trial: Any.
    """
    end = trial.ended
    if end is not None and end.sort != "refused":
        yield Suspicion(end.sort, end.stage, end.error, end.message, end.place)

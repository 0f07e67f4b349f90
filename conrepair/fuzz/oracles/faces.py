"""Outputs of another number, shape or element type than the network's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conrepair.cases.case import Array
from conrepair.fuzz.suspicion import Suspicion

__all__ = ["faces"]

_TEXTS = set("OUST")


def faces(given: Mapping[str, Array], right: Mapping[str, Array]) -> Iterator[Suspicion]:
    """Suspect outputs that look otherwise.

    Args:
        given: Answers of a system, by output.
        right: What the standard says, as far as shapes and types go.
    """
    if missing := sorted(set(right) - set(given)):
        yield Suspicion("outputs", "answers", message=f"there is no output {', '.join(missing)}")
    for name in (name for name in right if name in given):
        mine, other = given[name], right[name]
        if mine.dtype != other.dtype and not {mine.dtype.kind, other.dtype.kind} <= _TEXTS:
            words = f"{name} is of {mine.dtype.name} and should be of {other.dtype.name}"
            yield Suspicion("type", "answers", f"{mine.dtype.name} for {other.dtype.name}", words, output=name)
        if mine.shape != other.shape:
            words = f"{name} has the shape {list(mine.shape)} and should have {list(other.shape)}"
            yield Suspicion("shape", "answers", message=words, output=name)

"""Answers that hang on how many threads there are."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping

from conrepair.cases.case import Array
from conrepair.fuzz.oracles.faces import faces
from conrepair.fuzz.oracles.numbers import differing
from conrepair.fuzz.suspicion import THREADS, Suspicion

__all__ = ["threads"]


def threads(
    given: Mapping[str, Array], otherwise: Mapping[str, Array], allowed: Mapping[str, Array]
) -> Iterator[Suspicion]:
    """Suspect answers that are further apart than two right ones can be: threads may add in another order.

    Args:
        given: By output.
        otherwise: With another number of threads; empty where that wasn't tried.
        allowed: How far one right answer may be from the truth; outputs without it are left out.
    """
    judged = {name: array for name, array in otherwise.items() if name in allowed}
    twice = {name: 2 * allowed[name] for name in judged}
    for item in itertools.chain(faces(given, judged), differing(given, judged, twice)):
        words = f"the number of threads matters: {item.message}"
        yield dataclasses.replace(item, kind=THREADS, stage=THREADS, error="", message=words)

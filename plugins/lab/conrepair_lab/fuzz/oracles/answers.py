"""Oracles of outputs that are missing, have a wrong shape or type, or change with the run, memory or threads."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from conrepair.verdicts.truth.judging import LARGE, TEXTS
from conrepair_lab.cases.case import Array
from conrepair_lab.fuzz.oracles.numbers import differing
from conrepair_lab.fuzz.suspicion import THREADS, Suspicion

_KINDS = ("layout", "chance")  # of the second run, and of those behind it


def faces(given: Mapping[str, Array], right: Mapping[str, Array]) -> Iterator[Suspicion]:
    """Suspect outputs that are missing or have another shape or type.

    Args:
        given: Answers of a system, by output.
        right: What the standard says, as far as shapes and types go.
    """
    if missing := sorted(set(right) - set(given)):
        yield Suspicion("outputs", "answers", message=f"there is no output {', '.join(missing)}")
    for name in (name for name in right if name in given):
        mine, other = given[name], right[name]
        if mine.dtype != other.dtype and not {mine.dtype.kind, other.dtype.kind} <= TEXTS:
            words = f"{name} has the type {mine.dtype.name} and should have {other.dtype.name}"
            yield Suspicion("type", "answers", f"{mine.dtype.name} for {other.dtype.name}", words, output=name)
        if mine.shape != other.shape:
            words = f"{name} has the shape {list(mine.shape)} and should have {list(other.shape)}"
            yield Suspicion("shape", "answers", message=words, output=name)


def again(answers: Sequence[Mapping[str, Array]]) -> Iterator[Suspicion]:
    """Suspect runs on the same inputs whose answers are far apart: threads may add in another order.

    Args:
        answers: Of each run, from `conrepair_lab.fuzz.trial.tried`.
    """
    for place, later in enumerate(answers[1:]):
        for name, first in answers[0].items():
            if not _alike(first, later[name]):
                kind = _KINDS[min(place, 1)]
                words = f"{name} differs between run 1 and run {place + 2} on the same inputs"
                yield Suspicion(kind, "answers", message=words, output=name)


def _alike(one: Array, two: Array) -> bool:
    if one.shape != two.shape:
        return False
    if one.dtype.kind in TEXTS:
        return bool(np.array_equal(one, two))
    first, later = (array.astype(np.result_type(array, np.float64)) for array in (one, two))
    with np.errstate(all="ignore"):
        return bool(np.allclose(later, first, rtol=LARGE, atol=0, equal_nan=True))


def threads(
    given: Mapping[str, Array], otherwise: Mapping[str, Array], allowed: Mapping[str, Array]
) -> Iterator[Suspicion]:
    """Suspect outputs that differ by the number of threads more than right ones can: threads add in another order.

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

"""How long a case takes by several settings of a system, and which optimizations make it slower."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

from conrepair.cases.case import Case
from conrepair.fuzz.suspicion import SLOWER, Suspicion
from conrepair.fuzz.trial import with_options
from conrepair.systems.system import Setting, System

RUNS = 9

_TIMES = 2.0
_LEAST = 1e-4  # seconds: less is what calls take, whatever they compute


def timed(case: Case, system: System, settings: Sequence[Setting], folder: Path) -> list[float]:
    """Seconds of a run by each setting: the median of `RUNS`, in turn, so that what else runs here meets all.

    Args:
        case: Any.
        system: Which.
        settings: Of it; the case's options of the system are added.
        folder: For files.

    Raises:
        Exception: whatever one of them stumbles over.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        model = case.file(Path(made))
        opened = [system.open(model, with_options(system, setting, case), Path(made)) for setting in settings]
        for runnable in opened:
            runnable.run(dict(case.inputs))
        took: list[list[float]] = [[] for _ in opened]
        for _ in range(RUNS):
            for runnable, seconds in zip(opened, took, strict=True):
                begun = perf_counter()
                runnable.run(dict(case.inputs))
                seconds.append(perf_counter() - begun)
    return list(map(statistics.median, took))


def slower(seconds: float, plain: float) -> Iterator[Suspicion]:
    """Suspect what takes more than twice as long as with most left out.

    Args:
        seconds: Of a run.
        plain: Of one with most left out.
    """
    if seconds > _TIMES * plain and seconds - plain > _LEAST:
        words = f"a run takes {seconds:.3g} s, and {plain:.3g} s with most left out"
        yield Suspicion(SLOWER, SLOWER, message=words, given=seconds, exact=plain)

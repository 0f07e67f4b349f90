"""Evaluations a second of a search against a plain loop over the same pair: `python -m benchmarks.trace.rate`.

The loop is given the inputs that the search made, runs both sides and scores: what it lacks is the search alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from benchmarks.common.running import say
from benchmarks.trace.kept import Kept
from benchmarks.trace.networks import REAL, generated, real
from benchmarks.trace.search import PAIRS, SEEDS, opened
from conrepair.formats.models.runnable import Array, Runnable
from conrepair_lab.tracing.search.objectives import guide, scored
from conrepair_lab.tracing.search.space import Space
from conrepair_lab.tracing.searching import Sides, search_inputs

__all__ = ["rates"]

_PAIRS = {name: pair[:2] for name, pair in PAIRS.items() if "exact" not in pair} | {"ort": ("ort-all", "ort-none")}
_ROUNDS = 5


class _Remembered(Space):
    """A space that keeps the inputs that were asked for."""

    def each(self, points: Array) -> list[dict[str, Array]]:
        """See `Space.each`."""
        made = super().each(points)
        vars(self).setdefault("made", []).extend(made)
        return made


def rates(sides: list[Runnable], space: Space, evaluations: int) -> dict[str, float]:
    """Evaluations a second of the default method and of the loop, the best of some rounds in turn.

    Args:
        sides: That are opened.
        space: Of inputs.
        evaluations: Of a round.
    """
    remembered = _Remembered(space.parts, space.kept)
    _searched(sides, remembered, evaluations)
    inputs: list[Mapping[str, Array]] = vars(remembered)["made"]
    seconds = np.array([[_searched(sides, space, evaluations), _looped(sides, inputs)] for _ in range(_ROUNDS)]).min(
        axis=0
    )
    search, loop = (float(count / least) for count, least in zip((evaluations, len(inputs)), seconds, strict=True))
    return {"search": search, "loop": loop, "ratio": search / loop}


def _searched(sides: list[Runnable], space: Space, evaluations: int) -> float:
    started = time.process_time()
    both = Sides(sides[0], sides[1], space, guide)
    search_inputs(both, "mega", evaluations=evaluations, seconds=np.inf, seed=1)
    return time.process_time() - started


def _looped(sides: list[Runnable], inputs: list[Mapping[str, Array]]) -> float:
    started = time.process_time()
    best = -np.inf
    for feeds in inputs:
        one, two = sides[0].run(feeds), sides[1].run(feeds)
        best = max(best, scored(guide, list(one.values()), [two[name] for name in one]))
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="+", choices=list(_PAIRS), default=list(_PAIRS))
    parser.add_argument("--networks", type=int, default=5, help="generated ones of each pair")
    parser.add_argument("--real", type=int, default=len(REAL), help=f"of {', '.join(REAL)}")
    parser.add_argument("--evaluations", type=int, default=1000)
    parser.add_argument("--seeds", choices=list(SEEDS), default="development")
    parser.add_argument("--folder", type=Path, required=True, help="for networks and rows")
    asked = parser.parse_args()
    command = "python -m benchmarks.trace.rate"
    kept = Kept(asked.folder / f"rate-{asked.seeds}.jsonl", command)
    made = asked.folder / "made"
    for pair in asked.pairs:
        without = PAIRS[pair][2] if pair in PAIRS else frozenset[str]()
        _of_pair(pair, "real", (real(name, made) for name in REAL[: asked.real]), asked.real, kept, asked)
        _of_pair(pair, "generated", generated(SEEDS[asked.seeds], made, without), asked.networks, kept, asked)


def _of_pair(pair: str, sort: str, paths: Iterator[Path], count: int, kept: Kept, asked: argparse.Namespace) -> None:
    while sum(row["pair"] == pair and row["sort"] == sort and "ratio" in row for row in kept.rows) < count:
        path = next(paths, None)
        if path is None:
            return
        about = {"pair": pair, "sort": sort, "network": str(path.relative_to(asked.folder / "made").parent)}
        if not kept.known(**about):
            try:
                sides, space = opened(_PAIRS[pair], path, asked.folder / "opened")
            except Exception as error:  # noqa: BLE001 (whatever a converter or a compiler raises)
                kept.add([about | {"refused": type(error).__name__}])
                continue
            kept.add([about | {"size": space.size} | rates(sides, space, asked.evaluations)])
            say(str(kept.rows[-1]))


if __name__ == "__main__":
    main()

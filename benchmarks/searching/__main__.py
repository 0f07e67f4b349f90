"""python -m benchmarks.searching: how often each method finds planted defects, at equal budgets."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.searching.defects import DEFECTS
from benchmarks.searching.pairs import Pair, pair
from conrepair_lab.tracing.search.methods.all_methods import METHODS
from conrepair_lab.tracing.search.search import run

Array = np.ndarray[Any, Any]

_LIMIT = 1e-2  # of a relative error
_SELDOM = 0.2  # of runs at random: where no more find it, a network is hard


class Run:
    """A search of one seed, what it found, and what it took itself."""

    def __init__(self, case: Pair, name: str, evaluations: int, seed: int) -> None:
        self._case, self.spent = case, 0
        self.clear, self.raw, self.seconds = 0.0, 0.0, 0.0
        start = time.thread_time()
        planned = evaluations // 2 if name == "conditioning" else evaluations
        run(METHODS[name](case.space, evaluations, seed, case.answers), self._evaluate, planned, at_once=4)
        self.seconds += time.thread_time() - start

    def _evaluate(self, points: Array) -> Array:
        start = time.thread_time()
        scores, clear, raw = self._case.evaluate(points)
        self.seconds -= time.thread_time() - start
        self.spent += len(scores)
        self.clear, self.raw = max(self.clear, clear.max()), max(self.raw, raw.max())
        return scores


def searched(case: Pair, methods: list[str], seeds: list[int], evaluations: int) -> dict[str, list[Run]]:
    """Runs of all methods and seeds on a network."""
    return {name: [Run(case, name, evaluations, seed) for seed in seeds] for name in methods}


def main() -> None:
    """Print a table for each budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--networks", type=int, default=2, help="of each defect")
    parser.add_argument(
        "--first", type=int, default=0, help="seed of the first network; 100 and on are for reporting"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--defects", nargs="+", default=list(DEFECTS))
    parser.add_argument("--methods", nargs="+", default=[*METHODS])
    asked = parser.parse_args()
    for evaluations in asked.evaluations:
        every: dict[str, list[Run]] = {searcher: [] for searcher in asked.methods}
        hard: dict[str, list[Run]] = {searcher: [] for searcher in asked.methods}
        print(f"\n{evaluations} evaluations: how many of {asked.seeds} runs a network exceed 1e-2")
        print(f"{'':26}", *(f"{searcher[:7]:>7}" for searcher in asked.methods))
        for name in asked.defects:
            for network in range(asked.first, asked.first + asked.networks):
                seeds = [1000 * network + seed for seed in range(asked.seeds)]
                runs = searched(pair(name, network), asked.methods, seeds, evaluations)
                counts = {searcher: sum(run.clear > _LIMIT for run in found) for searcher, found in runs.items()}
                print(f"{name:26}", *(f"{count:7}" for count in counts.values()), flush=True)
                for searcher, found in runs.items():
                    every[searcher] += found
                    hard[searcher] += found if counts.get("random", 0) <= _SELDOM * asked.seeds else []
        runs_of = {"all": every, "hard": hard}
        print(", ".join(f"{len(runs[asked.methods[0]])} runs are {which}" for which, runs in runs_of.items()))
        print(f"{'':14}  >1e-3  >1e-2  raw>1e-2  hard>1e-3  hard>1e-2  us a candidate")
        for searcher, found in every.items():
            clear, more = (np.array([run.clear for run in runs]) for runs in (found, hard[searcher]))
            raw, seconds = (np.array([getattr(run, what) for run in found]) for what in ("raw", "seconds"))
            shares = [clear > 1e-3, clear > _LIMIT, raw > _LIMIT, more > 1e-3, more > _LIMIT]
            shown = zip(shares, (6, 6, 9, 10, 10), strict=True)
            print(f"{searcher:14}", *(f"{np.mean(share):{width}.1%}" for share, width in shown), end=" ")
            print(f"{1e6 * seconds.mean() / evaluations:15.0f}")


if __name__ == "__main__":
    main()

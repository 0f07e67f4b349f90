"""Which method of searching finds deviations, at equal budgets: `python -m benchmarks.trace.search`.

Both sides of a pair are opened once for each network, and all methods and seeds search there. Rows are kept as they
come, and the next run goes on; `python -m benchmarks.trace.page` makes tables of them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.running import say
from benchmarks.trace.kept import Kept
from benchmarks.trace.networks import REAL, generated, model_of, real
from conrepair.formats.models.runnable import Array, Runnable
from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.verdicts.truth.bound import ACCURACY, Analysis
from conrepair.verdicts.truth.judging import judge
from conrepair_lab.systems.registry import entry
from conrepair_lab.tracing.exact_side import ExactSide, over_bound
from conrepair_lab.tracing.search.methods import all_methods
from conrepair_lab.tracing.search.objectives import guide, relative
from conrepair_lab.tracing.search.search import run
from conrepair_lab.tracing.search.space import Part, Space, space_of
from conrepair_lab.tracing.searching import Sides

__all__ = ["METHODS", "PAIRS", "PLAIN", "SEEDS", "TENTH", "opened", "searched"]

METHODS = ("random", "climb", "differential", "annealing", "cmaes", "mega")
TENTH = "conditioning"
"""The method that gets a tenth of the evaluations, half of which look at one side alone."""

PLAIN = ("random", "differential", "annealing")
"""Methods that also search inputs as they are, without our space of magnitudes."""

_NO_TFLITE = frozenset(["Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Erf", "Sinh", "Tan"])
PAIRS: Mapping[str, tuple[str, str, frozenset[str]]] = {
    "tvm": ("tvm-fast", "tvm-O0", frozenset()),
    "torch": ("torch-compile", "torch-eager", frozenset()),
    "tflite": ("tflite-delegate", "tflite-builtin", _NO_TFLITE),
    "tvm-exact": ("tvm-fast", "exact", frozenset()),
    "torch-exact": ("torch-compile", "exact", frozenset()),
    "tflite-exact": ("tflite-delegate", "exact", _NO_TFLITE),
}
"""By name: the system in question, the other side, and operators for which it has no kernels."""

SEEDS = {"development": 11, "reporting": 90_001}
_EXACT = "exact"
_QUARTER = 4  # of the evaluations, and of the seconds, go to exact values
_SECONDS = 60.0
_JUDGED = 8


class _AsTheyAre(Part):
    """A tensor whose coordinates are its elements."""

    @property
    def coordinates(self) -> int:
        """One for each element."""
        return int(self.centres.shape[1])

    def values(self, coordinates: Array, rows: Array) -> Array:
        """From the lower to the upper end."""
        reach = np.where(coordinates < 0, self.down[rows], self.up[rows])
        return np.asarray((self.centres[rows] + coordinates * reach).reshape(-1, *self.shape), self.dtype)


class Watched:
    """The objective of searches, as a trace has it, and the largest errors that it has seen."""

    def __init__(self, other: Runnable) -> None:
        self._exact = other if isinstance(other, ExactSide) else None
        self.largest, self.over = 0.0, 0.0

    def __call__(self, one: Sequence[Array], two: Sequence[Array], distance: float = 0.0) -> float:
        self.largest = max(self.largest, float(relative(one, two).max(initial=0)))
        if self._exact is None:
            return guide(one, two)
        score = over_bound(self._exact, one, two)
        self.over = max(self.over, 10**score)
        return score


def opened(names: Sequence[str], path: Path, folder: Path) -> tuple[list[Runnable], Space]:
    """Sides of a network, which answer on inputs in the middle of the range, and what's searched there.

    Raises:
        Exception: whatever converters and compilers raise.
    """
    there = folder / f"{path.parent.parent.name}-{path.parent.name}"
    there.mkdir(parents=True, exist_ok=True)
    model = model_of(path)
    sides = [entry(name).runs.open(model, entry(name).chosen, there) for name in names if name != _EXACT]
    space = space_of(sides[0].inputs)
    if _EXACT in names:
        sides.append(ExactSide(read_proto(path), sides[0].inputs, sides[0].outputs))
    for side in sides:
        side.run(space.feeds(np.zeros(space.size)))
    return sides, space


def searched(path: Path, pair: str, seeds: int, evaluations: int, folder: Path, first: int) -> list[dict[str, Any]]:
    """A row for each method and seed.

    Args:
        path: Of the network.
        pair: A key of `PAIRS`.
        seeds: How many.
        evaluations: Of each search.
        folder: For files.
        first: The first seed.

    Raises:
        Exception: if a side doesn't take the network.
    """
    one, two, _ = PAIRS[pair]
    sides, space = opened([one, two], path, folder)
    try:
        analysis = Analysis(read_proto(path))
        analysis.at(space.feeds(np.zeros(space.size)))
    except Exception:  # noqa: BLE001 (the reference raises a dozen types for what it doesn't know)
        analysis = None
    plain = Space(tuple(_AsTheyAre(**vars(part)) for part in space.parts), space.kept)
    tried = [(name, space, name) for name in (*METHODS, TENTH)] + [(f"plain {name}", plain, name) for name in PLAIN]
    return [
        {"method": shown, "seed": seed, **_row(name, sides, where, analysis, seed, evaluations)}
        for seed in range(first, first + seeds)
        for shown, where, name in tried
    ]


def _row(
    name: str, sides: Sequence[Runnable], space: Space, analysis: Analysis | None, seed: int, evaluations: int
) -> dict[str, Any]:
    watched, started = Watched(sides[1]), time.process_time()
    both = Sides(sides[0], sides[1], space, watched)
    seconds = _SECONDS
    if isinstance(sides[1], ExactSide):
        evaluations, seconds, analysis = evaluations // _QUARTER, seconds / _QUARTER, None
    planned = evaluations // 10 if name == TENTH else evaluations
    search = all_methods.METHODS[name](space, planned, seed, both.answers)
    with np.errstate(all="ignore"):
        run(search, both.evaluate, planned // 2 if name == TENTH else planned, seconds)
    spent = time.process_time() - started
    judged = [] if analysis is None else [_over(analysis, item.feeds, sides) for item in both.best[:_JUDGED]]
    over = max(judged, default=watched.over)
    return {"largest": watched.largest, "over": over, "failed": both.failed, "seconds": spent}


def _over(analysis: Analysis, feeds: Mapping[str, Array], sides: Sequence[Runnable]) -> float:
    """The worst error of any side in bounds; above 1 it's wrong."""
    found, worst = analysis.at(feeds, ACCURACY), 0.0
    one, two = (side.run(feeds) for side in sides)
    for name in one:
        judged = judge(one[name], two[name], found.truth[name], found.bound[name])
        worst = max(worst, *(side.bounds if side.beyond else 0.0 for side in (judged.one, judged.two)))
    return min(worst, 1e300)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="+", choices=list(PAIRS), default=list(PAIRS))
    parser.add_argument("--networks", type=int, default=60, help="generated ones of each pair")
    parser.add_argument("--real", type=int, default=len(REAL), help=f"of {', '.join(REAL)}")
    parser.add_argument("--seeds", choices=list(SEEDS), default="development")
    parser.add_argument("--searches", type=int, default=5, help="seeds of each search")
    parser.add_argument("--evaluations", type=int, default=1000)
    parser.add_argument("--folder", type=Path, required=True, help="for networks and rows")
    asked = parser.parse_args()
    command = "python -m benchmarks.trace.search"
    for pair in asked.pairs:
        _of_pair(pair, Kept(asked.folder / f"search-{asked.seeds}-{pair}.jsonl", command), asked)


def _of_pair(pair: str, kept: Kept, asked: argparse.Namespace) -> None:
    made, seed = asked.folder / "made", SEEDS[asked.seeds]
    real_ones = (real(name, made) for name in REAL[: asked.real])
    sorts = (("generated", generated(seed, made, PAIRS[pair][2]), asked.networks), ("real", real_ones, asked.real))
    for sort, paths, count in sorts:
        taken = 0
        for path in paths if count else ():
            about = {"pair": pair, "sort": sort, "network": str(path.relative_to(made).parent)}
            started = time.perf_counter()
            if not kept.known(**about):
                kept.add({**about, **row} for row in _rows(path, pair, asked, seed))
                say(f"{pair} {about['network']}: {time.perf_counter() - started:.0f} s, {_told(kept, about)}")
            taken += kept.known(**about, refused=None)
            if taken == count:
                break


def _rows(path: Path, pair: str, asked: argparse.Namespace, seed: int) -> list[dict[str, Any]]:
    try:
        return searched(path, pair, asked.searches, asked.evaluations, asked.folder / "opened", seed)
    except Exception as error:  # noqa: BLE001 (whatever a converter or a compiler raises)
        return [{"refused": " ".join(f"{type(error).__name__}: {error}".split())[:200]}]


def _told(kept: Kept, about: Mapping[str, Any]) -> str:
    rows = [row for row in kept.rows if about.items() <= row.items()]
    return rows[0].get("refused") or " ".join(f"{row['method']} {row['largest']:.0e}" for row in rows[: len(METHODS)])


if __name__ == "__main__":
    main()

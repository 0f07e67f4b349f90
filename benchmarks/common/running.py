"""Which cases a benchmark is asked for, and running them in workers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.cases import DEVELOPMENT_SEEDS, REPORTING_SEEDS, Case
from benchmarks.common.jobs import JOBS
from benchmarks.common.lanes import run_all
from benchmarks.common.models import MODELS, models_of
from benchmarks.common.sides import Sides
from conrepair.formats.converters.all_converters import converter
from conrepair.ground.runtime.processes.workers import Job, Outcome, Success, Workers

__all__ = [
    "SEEDS",
    "add_case_options",
    "add_options",
    "chosen_cases",
    "named_cases",
    "result_of",
    "run_cases",
    "say",
    "some_workers",
]

Plan = Callable[..., list[Case]]

SEEDS = {"development": DEVELOPMENT_SEEDS, "reporting": REPORTING_SEEDS}
_MEMORY_GB = 10.0
_LONGEST = 1200.0  # seconds of a single job
_ORDER = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """What chooses cases, and where results go."""
    parser.add_argument("--quick", action="store_true", help="some of each sort, without the two largest models")
    parser.add_argument("--only", type=_models, metavar="MODEL,...", help=", ".join(MODELS))
    parser.add_argument("--formats", type=_names, metavar="FORMAT,...", help="of targets")
    add_case_options(parser, list(SEEDS), "only so many of each model, of a random order")


def add_case_options(parser: argparse.ArgumentParser, seeds: Sequence[str], first: str) -> None:
    """What every benchmark of cases takes.

    Args:
        parser: Of the benchmark.
        seeds: Names of sets of seeds.
        first: What `--first` does.
    """
    parser.add_argument("--groups", type=_names, metavar="GROUP,...")
    parser.add_argument("--seeds", choices=list(seeds), default="development")
    parser.add_argument("--case", action="append", metavar="NAME", help="only this case, as it's listed")
    parser.add_argument("--list", action="store_true", help="name the cases, and run none")
    parser.add_argument("--lanes", type=int, default=2, help="workers side by side (default 2)")
    parser.add_argument("--first", type=int, metavar="N", help=first)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all rows there; a run is continued from them")
    parser.add_argument("--fresh", action="store_true", help="with --json: begin anew where the file has rows")
    parser.add_argument("--tables", type=Path, metavar="FILE", help="run nothing; tables of what --json wrote there")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the tables there")


def _names(text: str) -> list[str]:
    return text.split(",")


def _models(text: str) -> list[str]:
    names = _names(text)
    if unknown := [name for name in names if name not in MODELS]:
        raise argparse.ArgumentTypeError(f"there is no model {unknown[0]}; there are {', '.join(MODELS)}")
    return names


def named_cases(cases: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The cases of some names; ends the program for a name that none has.

    Args:
        cases: All.
        names: Of those that are wanted.
    """
    found = [case for case in cases if case.name in names]
    if len(found) < len(set(names)):
        missing = next(name for name in names if name not in {case.name for case in found})
        sys.exit(f"there is no case {missing}; --list names them (with the same --seeds)")
    return found


def chosen_cases(options: argparse.Namespace, plan: Plan) -> list[Case]:
    """The cases that are asked for, in a random order that is always the same, so that the first stand for all.

    Ends the program for a name that no case has.

    Args:
        options: From `add_options`.
        plan: Takes models' names, seeds and `quick`.
    """
    networks = models_of(SEEDS[options.seeds])
    if others := set(options.only or ()) - set(networks):
        sys.exit(f"{min(others)} is no network of the {options.seeds} seeds; those are {', '.join(networks)}")
    only = options.only or networks
    cases = plan(only, SEEDS[options.seeds], quick=options.quick)
    if options.case:
        return named_cases(cases, options.case)
    chosen = [
        case
        for case in cases
        if (not options.formats or case.format in options.formats)
        and (not options.groups or case.group in options.groups)
    ]
    shuffled = [chosen[index] for index in np.random.default_rng(_ORDER).permutation(len(chosen))]
    firsts = {case for name in only for case in [item for item in shuffled if item.model == name][: options.first]}
    return [case for case in shuffled if case in firsts]


def some_workers(count: int) -> Workers:
    """Worker processes with a bound on their memory."""
    return Workers(count, memory_gb=_MEMORY_GB, jobs=JOBS)


def run_cases(
    cases: Sequence[Case],
    folder: Path,
    workers: Workers,
    function: str,
    *,
    timeout: float,
    quick: bool = False,
    unseen: bool = False,
    more: Callable[[Case], Mapping[str, Any]] = lambda _: {},
) -> Iterator[tuple[Case, Outcome | str]]:
    """Run cases, each as a job of its own.

    Args:
        cases: Which.
        folder: For models and the jobs' files.
        workers: Where they run.
        function: "package.module:function" that carries one out.
        timeout: Seconds for one.
        quick: Compare one batch only.
        unseen: Make samples for verification behind those that are localized by.
        more: What else a case's job is told.

    Yields:
        Each case with its outcome, as they are ready; with words, if the models that it needs couldn't be made.
    """
    sides = Sides(folder, workers, unseen=unseen)
    sides.make([(case.model, side) for case in cases for side in (case.source, case.base)], say)
    jobs = []
    for place, case in enumerate(cases):
        failed = [side for side in (case.source, case.base) if sides.get(case.model, side) is None]
        if failed:
            yield case, sides.failures[case.model, failed[0]]
        else:
            payload = _payload(case, sides, quick=quick) | more(case)
            needs = frozenset[str]().union(*(converter(name).needs for name in case.route), {case.format})
            jobs.append((case, Job(function, payload, folder / f"case-{place}", needs, timeout)))
    yield from run_all(workers, jobs)


def _payload(case: Case, sides: Sides, *, quick: bool) -> dict[str, Any]:
    model = MODELS[case.model]
    return {
        "group": case.group,
        "source": sides.get(case.model, case.source),
        "base": sides.get(case.model, case.base),
        "data": sides.data[case.model],
        "samples": model.batch_size if quick else model.samples,
        "batch_size": model.batch_size,
        "faults": list(case.faults),
        "count": case.count,
        "seed": case.seed,
        "rewriting": case.rewriting,
        "route": list(case.route),
        "precision": case.precision,
        "agree": case.agree,
    }


def result_of(workers: Workers, function: str, payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What a job gives that a benchmark can't go on without.

    Args:
        workers: Where it runs.
        function: "package.module:function".
        payload: For it.
        folder: Is made.

    Raises:
        RuntimeError: if the job fails.
    """
    folder.mkdir(parents=True)
    outcome = workers.call(Job(function, payload, folder, timeout=_LONGEST))
    if not isinstance(outcome, Success):
        raise RuntimeError(f"{function}: {outcome}")
    return outcome.value


def say(line: str) -> None:
    """Tell whoever watches."""
    print(line, file=sys.stderr, flush=True)

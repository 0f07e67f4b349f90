"""Benchmarks whose cases make their networks themselves, from a seed: what they're asked for, and running them."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.cases import Case
from benchmarks.common.continuing import run_rows
from benchmarks.common.judged import JudgedRow
from benchmarks.common.lanes import run_all
from benchmarks.common.rows import read_rows
from benchmarks.common.running import SEEDS, add_case_options, named_cases
from conrepair.application.engine.fingerprint import code_fingerprint
from conrepair.ground.runtime.processes.workers import Job, Outcome, Workers

__all__ = ["add_generated_options", "case_of", "chosen_generated", "run_generated", "run_judged"]

_ORDER = 1


def add_generated_options(parser: argparse.ArgumentParser) -> None:
    """What chooses cases, and where results go."""
    add_case_options(parser, list(SEEDS), "only so many, of a random order")


def chosen_generated(options: argparse.Namespace, plan: Callable[[Sequence[int]], list[Case]]) -> list[Case]:
    """The cases that are asked for, in a random order that is always the same, so that the first stand for all.

    Ends the program for a name that no case has.

    Args:
        options: From `add_generated_options`.
        plan: Takes seeds.
    """
    cases = list({case.name: case for case in plan(SEEDS[options.seeds])}.values())
    if options.case:
        return named_cases(cases, options.case)
    chosen = [case for case in cases if not options.groups or case.group in options.groups]
    order = np.random.default_rng(_ORDER).permutation(len(chosen))
    return [chosen[index] for index in order][: options.first]


def run_generated(
    cases: Sequence[Case],
    folder: Path,
    workers: Workers,
    function: str,
    *,
    timeout: float,
    more: Mapping[str, Any] | None = None,
) -> Iterator[tuple[Case, Outcome | str]]:
    """Run cases, each as a job of its own.

    Args:
        cases: Which.
        folder: For the jobs' files.
        workers: Where they run.
        function: "package.module:function" that carries one out, given what `case_of` reads and "kept", a folder for
            what cases share.
        timeout: Seconds for one.
        more: What else each job is told.
    """
    jobs = []
    for place, case in enumerate(cases):
        payload = {"case": dataclasses.asdict(case), "kept": str(folder / "kept"), **(more or {})}
        jobs.append((case, Job(function, payload, folder / f"case-{place}", timeout=timeout)))
    yield from run_all(workers, jobs)


def run_judged(
    options: argparse.Namespace,
    plan: Callable[[Sequence[int]], list[Case]],
    function: str,
    timeout: float,
    report: Callable[[list[JudgedRow]], str],
) -> int:
    """Run a benchmark that asks what is said of targets, and print.

    Args:
        options: From `add_generated_options`.
        plan: Takes seeds.
        function: "package.module:function" that carries a case out.
        timeout: Seconds for one.
        report: Tables of rows.

    Returns:
        1 for a right target that isn't called right, or a fault that isn't called one; else 0.
    """
    if options.tables:
        print(report(read_rows(JudgedRow, options.tables)[1]))
        return 0
    cases = chosen_generated(options, plan)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    about = {"seeds": options.seeds, "code": code_fingerprint("localize")[:16]}
    run = functools.partial(run_generated, function=function, timeout=timeout)
    rows = run_rows(options, JudgedRow, about, cases, run, lambda row: f"{row.status} {row.verdict}")
    text = report(rows)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    print(text)
    return int(any(row.wrong or row.agrees is False for row in rows))


def case_of(payload: Mapping[str, Any]) -> Case:
    """The case of a job."""
    values = {name: tuple(item) if isinstance(item, list) else item for name, item in payload["case"].items()}
    return Case(**values)

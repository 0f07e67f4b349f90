"""The command line of benchmarks whose cases are generated networks."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

from benchmarks.common.cases import Case
from benchmarks.common.continuing import run_rows
from benchmarks.common.generated import add_generated_options, chosen_generated, run_generated
from benchmarks.common.rows import CaseRow, read_rows
from conrepair.application.engine.fingerprint import code_fingerprint

__all__ = ["ask"]

Row = TypeVar("Row", bound=CaseRow)


def ask(
    words: str | None,
    sort: type[Row],
    plan: Callable[[Sequence[int]], list[Case]],
    trial: tuple[str, float, str],
    report: Callable[[Sequence[Row]], str],
    told: Callable[[Row], str],
) -> list[Row]:
    """Read the command line, run what it asks for, and print.

    Args:
        words: Of `--help`.
        sort: Of row.
        plan: Takes seeds.
        trial: "package.module:function" that carries a case out, seconds for one, and the job that it tries.
        report: Tables of rows.
        told: What a row says to whoever watches.

    Returns:
        The rows.
    """
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_generated_options(parser)
    options = parser.parse_args()
    cases = chosen_generated(options, plan)
    if options.list:
        print("\n".join(case.name for case in cases))
        return []
    if options.tables:
        rows = read_rows(sort, options.tables)[1]
    else:
        function, seconds, job = trial
        about = {"seeds": options.seeds, "code": code_fingerprint(job)[:16]}
        run = functools.partial(run_generated, function=function, timeout=seconds)
        rows = run_rows(options, sort, about, cases, run, told)
    text = report(rows)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    print(text)
    return rows

"""Each output of each target in numbers: the same columns on consoles, in Markdown and on pages."""

from __future__ import annotations

from collections.abc import Iterable

from conrepair.evaluate.compare import OutputComparison
from conrepair.evaluate.verdict import Verdict
from conrepair.report.result import AuditResult, Row
from conrepair.report.told import name_of
from conrepair.runtime.words import number

_RIGHT = {Verdict.EQUIVALENT, Verdict.NOISE}
FEW = 20
"""Lines that are shown beside other tables; comparisons.csv has all."""


def output_table(rows: Iterable[Row], result: AuditResult) -> list[tuple[str, ...]]:
    """Titles, and a line for each output that was compared; columns in which nothing stands are left out.

    Args:
        rows: Of the run.
        result: The run.
    """
    compared = [(row, output) for row in rows if row.comparison is not None for output in row.comparison.outputs]
    own = dict.fromkeys(name for _, output in compared for name in output.metrics)
    lines = [
        {"target": name_of(row, result), "ran by": row.backend}
        | _figures(output, result.top_k)
        | {name: number(output.metrics[name]) if name in output.metrics else "" for name in own}
        for row, output in compared
    ]
    titles = [title for title in (lines[0] if lines else ()) if any(line[title] for line in lines)]
    single = [title for title in ("target", "ran by") if len({line[title] for line in lines}) == 1]
    titles = [title for title in titles if title not in single]
    return [tuple(titles), *(tuple(line[title] for title in titles) for line in lines)] if lines else []


def _figures(output: OutputComparison, top_k: int) -> dict[str, str]:
    error, answers = output.error, output.answers
    return {
        "output": output.pair.reference,
        "verdict": output.verdict.value,
        "relative error": number(error.relative_l2),
        "max abs": number(error.max_abs),
        "explained by": "" if output.explained is None else str(output.explained),
        "SQNR dB": f"{error.sqnr_db:.1f}",
        "cosine": f"{error.cosine:.6f}",
        "KL": "" if answers is None else number(answers.kl_divergence),
        f"top-{top_k} agree": "" if answers is None else f"{answers.overlap:.1%}",
    }


def tests_of(row: Row) -> list[str]:
    """Tolerances for tests of a user's own, in words; none where the target isn't right."""
    outputs = row.comparison.outputs if row.comparison is not None and row.verdict in _RIGHT else ()
    return [
        f"{f'output {output.pair.reference}: ' if len(outputs) > 1 else ''}{output.tests}"
        for output in outputs
        if output.tests is not None
    ]

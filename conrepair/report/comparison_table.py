"""Comparisons and inputs as CSV."""

from __future__ import annotations

from collections.abc import Iterable

from conrepair.evaluate.compare import Comparison, OutputComparison
from conrepair.evaluate.inputs import Answer, ComparedInput
from conrepair.report.csv_text import csv_text

__all__ = ["comparisons_csv", "inputs_csv"]

_ANSWERS = ("samples", "top1_differs", "overlap", "rank_biased_overlap", "kendall_tau", "kl_divergence")
_ERRORS = ("max_abs", "mean_abs", "relative_l2", "cosine", "norm_ratio", "sqnr_db", "nan_candidate", "inf_candidate")
_TIMES = ("ratio_of_medians", "p_value", "corrected_p")
_COMPARED = (
    *("reference", "candidate", "output", "verdict", "samples", "top1_differs", "overlap"),
    *("rbo", "kendall_tau", "kl_divergence", "max_abs", "mean_abs", "relative_l2", "cosine"),
    *("norm_ratio", "sqnr_db", "nan", "inf", "time_ratio", "time_p_value", "time_corrected_p"),
)
_INPUTS = (
    *("index", "input", "label", "differs", "relative_l2", "max_abs"),
    *("reference_class", "reference_score", "candidate_class", "candidate_score"),
)


def comparisons_csv(comparisons: Iterable[Comparison]) -> str:
    """One line for each output of each comparison; no answers where outputs aren't scores of classes."""
    rows = (_compared(comparison, output) for comparison in comparisons for output in comparison.outputs)
    return csv_text(_COMPARED, rows)


def _compared(comparison: Comparison, output: OutputComparison) -> list[object]:
    return [
        *(comparison.reference, comparison.candidate, output.pair.reference, output.verdict.value),
        *(getattr(output.answers, name, "") for name in _ANSWERS),
        *(getattr(output.error, name) for name in _ERRORS),
        *(getattr(comparison.times, name) for name in _TIMES),
    ]


def inputs_csv(inputs: Iterable[ComparedInput]) -> str:
    """One line for each input, with the best class of both sides; empty where outputs aren't scores."""
    rows = (
        [
            *(item.index, item.name, item.label, item.differs, item.relative_l2, item.max_abs),
            *(*_best(item.reference), *_best(item.candidate)),
        ]
        for item in inputs
    )
    return csv_text(_INPUTS, rows)


def _best(answer: Answer) -> tuple[object, object]:
    return answer[0] if answer else ("", "")

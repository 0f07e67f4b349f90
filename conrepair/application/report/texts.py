"""The text files of a run's folder, all of which follow from its result: without running a model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from conrepair.application.report.backend_matrix import backends_csv, matrices
from conrepair.application.report.csv_text import csv_text
from conrepair.application.report.encode import encode
from conrepair.application.report.figures import figures_of
from conrepair.application.report.localization.texts import layers_csv
from conrepair.application.report.machine.junit import junit_xml
from conrepair.application.report.machine.markdown import summary_markdown
from conrepair.application.report.machine.sarif import sarif_text
from conrepair.application.report.result import AuditResult, Problem, Row
from conrepair.application.report.row_paths import RowFolders
from conrepair.application.report.summary import summary_text
from conrepair.application.report.verdict_table import verdicts_csv, verdicts_markdown
from conrepair.ground.runtime.words import harmless, printable
from conrepair.verdicts.evaluate.answers import Answer
from conrepair.verdicts.evaluate.compare import Comparison, OutputComparison
from conrepair.verdicts.evaluate.inputs import ComparedInput

# Comparisons and inputs as CSV.

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


def _comparisons_csv(comparisons: Iterable[Comparison]) -> str:
    """One line for each output of each comparison; no answers where outputs aren't scores of classes."""
    compared = [(item, output) for item in comparisons for output in item.outputs]
    own = list(dict.fromkeys(name for _, output in compared for name in output.metrics))
    rows = ([*_compared(item, output), *map(output.metrics.get, own)] for item, output in compared)
    return csv_text([*_COMPARED, *own], rows)


def _compared(comparison: Comparison, output: OutputComparison) -> list[object]:
    return [
        *(comparison.reference, comparison.candidate, output.pair.reference, output.verdict.value),
        *(getattr(output.answers, name, "") for name in _ANSWERS),
        *(getattr(output.error, name) for name in _ERRORS),
        *(getattr(comparison.times, name) for name in _TIMES),
    ]


def _inputs_csv(inputs: Iterable[ComparedInput]) -> str:
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


INPUTS = "inputs.csv"


def texts_of(result: AuditResult, placed: AuditResult | None = None) -> dict[str, str]:
    """What is to be written beside the document.

    Args:
        result: Of any verb, or of an audit; read from a document, it gives the same.
        placed: The same with its files where they will be, for texts that name them; default: where they are.

    Returns:
        Texts by their paths in the folder; none of kinds of runs that judge no target.
    """
    of_kind, named = _TEXTS.get(result.kind), placed or result
    if of_kind is None:
        return {}
    return of_kind(result) | {
        "junit.xml": junit_xml(named),
        "results.sarif": sarif_text(named),
        "summary.md": summary_markdown(named),
    }


def _of_localization(result: AuditResult) -> dict[str, str]:
    row = result.rows[-1]
    steps = row.localized.steps
    texts = {"layers.csv": layers_csv(steps[-1].localization.layers)} if steps else {}
    return texts | ({INPUTS: _inputs_csv(row.inputs)} if row.inputs else {})


def _of_audit(result: AuditResult) -> dict[str, str]:
    texts = {
        "summary.txt": summary_text(result),
        "execution_log.txt": _execution_log(result),
        "comparisons.csv": _comparisons_csv(result.comparisons),
    }
    if compared := matrices(result):
        texts["backends.csv"] = backends_csv(compared)
    if result.architectures:
        texts |= {"verdicts.md": verdicts_markdown(result), "verdicts.csv": verdicts_csv(result)}
    folders = RowFolders(result.rows)
    for row in result.rows:
        texts |= _of_row(row, folders)
    return texts


def _of_row(row: Row, folders: RowFolders) -> dict[str, str]:
    texts = {}
    if row.ran.artifact is not None:
        model = dataclasses.replace(row.ran.artifact, path=Path(row.ran.artifact.path).name)
        record = encode({"model": model, "description": row.ran.description})
        texts[f"{folders.model(row)}/provenance.json"] = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    if row.inputs:
        texts[f"{folders.run(row)}/{INPUTS}"] = _inputs_csv(row.inputs)
    for place, step in enumerate(row.localized.steps):
        texts[f"{folders.localization(row, place)}/layers.csv"] = layers_csv(step.localization.layers)
    if problems := list(filter(None, (row.problem, row.localized.problem, row.repaired.problem))):
        texts[folders.error(row)] = "\n".join(map(_problem, problems))
    return texts


def _problem(problem: Problem) -> str:
    parts = [problem.message, problem.explanation, problem.traceback, problem.last_words]
    return harmless("\n\n".join(part for part in parts if part)) + "\n"


_TIMED = "mean {times.mean:.6f} s, median {times.median:.6f} s, 5 % {times.q05:.6f} s, 95 % {times.q95:.6f} s"
_UNTIMED = "no batch after the first of its size"


def _execution_log(result: AuditResult) -> str:
    lines = []
    for row in result.rows:
        told = harmless(row.reason)
        if row.ran.run is not None:
            timed = figures_of(None, row.ran).told(_TIMED)
            times = f"{timed}{', from an earlier run' if row.ran.reused else ''}" if timed else _UNTIMED
            told = f"{row.ran.run.count} inputs, {times}"
        lines.append(f"{printable(f'{row.name} on {row.backend}')}: {told}")
    return "\n".join(lines) + "\n"


_TEXTS: Mapping[str, Callable[[AuditResult], dict[str, str]]] = {
    "audit": _of_audit,
    "compare": _of_audit,
    "localize": _of_localization,
    "repair": lambda _: {},
}

"""Write the folder of an audit: models, records, report; the folder appears whole."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from conrepair.frameworks.identity import copy_model
from conrepair.report.backend_matrix import backends_csv, matrices, matrix_json
from conrepair.report.encode import encode
from conrepair.report.localization.about import about_step
from conrepair.report.localization.write import DOCUMENT as LOCALIZATION
from conrepair.report.localization.write import write_localization
from conrepair.report.records import write_record
from conrepair.report.repair.summary import repair_line
from conrepair.report.repair.write import DOCUMENT as REPAIR
from conrepair.report.repair.write import write_repair
from conrepair.report.result import AuditResult, Build, LocalizedStep, Problem, Row
from conrepair.report.saved import DOCUMENT, result_text
from conrepair.report.summary import summary_text
from conrepair.report.verdict_table import verdicts_csv, verdicts_markdown
from conrepair.runtime.errors import UsageError
from conrepair.runtime.files import put_text, whole_output, write_json, write_text
from conrepair.runtime.path_text import fitting_name, real_path
from conrepair.runtime.store import RECORD

__all__ = ["check_folder", "report_json", "row_json", "write_audit", "write_so_far"]

REPORT_VERSION = 1
_REPORT = "report.json"
_TEXTS = {".py", ".ll", ".cl", ".cu", ".json"}


def check_folder(folder: Path, inputs: Iterable[Path]) -> None:
    """Make sure that replacing an audit's folder loses nothing of the user's.

    Args:
        folder: Of the audit.
        inputs: Files and folders that the audit reads.

    Raises:
        UsageError: if the folder is something else than an earlier audit's, or holds an input.
    """
    if not folder.exists():
        return
    if not (folder / _REPORT).is_file():
        raise UsageError(
            f"{folder} exists and no audit wrote it, so it isn't replaced. Give the audit another `name` or `output`."
        )
    for path in inputs:
        if real_path(path).is_relative_to(real_path(folder)):
            raise UsageError(
                f"{path} lies in {folder}, which this audit would replace. Copy it elsewhere, or give the audit "
                "another `name` or `output`."
            )


def write_audit(result: AuditResult, store: Path) -> None:
    """Write everything below `result.folder`, which replaces what an earlier run wrote there.

    Args:
        result: What to write.
        store: Folder of the content-addressed store; models that lie in it are copied out.

    Raises:
        StorageError: if it can't be written.
    """
    with whole_output(result.folder) as folder:
        folder.mkdir()
        for row in result.rows:
            _write_model(row, store, folder / "models" / row.name)
            if row.ran.run is not None:
                place = folder / "runs" / row.name / row.backend
                place.mkdir(parents=True)
                names = result.samples[result.datasets[row.model]]
                write_record(row, row.ran.run, names, result.top_k, place)
            _write_build(row, folder)
            _write_localization(row, result, folder / "localization" / _localized(row))
            if row.repaired.result is not None:
                place = folder / "repair" / _localized(row)
                place.parent.mkdir(parents=True, exist_ok=True)
                write_repair(row.repaired.result, place, row.repaired.advice)
            for problem in filter(None, (row.problem, row.localized.problem, row.repaired.problem)):
                name = fitting_name(f"{row.name.replace('/', '__')}@{row.backend}")
                _write_problem(problem, folder / "errors" / f"{name}.log")
        put_text(folder / "execution_log.txt", _execution_log(result))
        put_text(folder / "summary.txt", summary_text(result))
        put_text(folder / "comparisons.csv", _csv(result))
        if compared := matrices(result):
            put_text(folder / "backends.csv", backends_csv(compared))
        if result.architectures:
            put_text(folder / "verdicts.md", verdicts_markdown(result))
            put_text(folder / "verdicts.csv", verdicts_csv(result))
        write_json(folder / _REPORT, report_json(result))
        put_text(folder / DOCUMENT, result_text(result))
    _so_far(result.folder).unlink(missing_ok=True)


def write_so_far(result: AuditResult) -> None:
    """Write the verdicts of a list that isn't finished beside the folder that it will get.

    Args:
        result: Of the architectures that are done.

    Raises:
        StorageError: if it can't be written.
    """
    about = f"{len(result.architectures)} architectures so far. Started again, the audit goes on where it stopped."
    write_text(_so_far(result.folder), f"{verdicts_markdown(result)}\n{about}\n")


def _so_far(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.unfinished.md")


def _write_localization(row: Row, result: AuditResult, folder: Path) -> None:
    """Write the localization that explains the row, and inside of its folder those of the other steps."""
    for step in sorted(row.localized.steps, key=lambda step: not _explains(step, row)):
        place = folder if _explains(step, row) else folder / step.name
        place.parent.mkdir(parents=True, exist_ok=True)
        found = (
            row.localized.result if _explains(step, row) and row.localized.result is not None else step.localization
        )
        write_localization(found, place, about_step(step, row, result))


def _explains(step: LocalizedStep, row: Row) -> bool:
    return step.compared == row.localized.compared


def _localized(row: Row) -> str:
    """Name of what was looked into: a build has its own folder beside its model's."""
    if row.ran.build is None:
        return row.name
    folder, name = row.name.split("/", 1)
    return f"{folder}/{fitting_name(f'{name}@{row.backend}')}"


def _localization_brief(row: Row) -> dict[str, Any] | None:
    """What a report says of a row's localization; all of it is in a file of its own."""
    found = row.localized.result
    if found is None:
        return None if row.localized.problem is None else {"problem": encode(row.localized.problem)}
    folder = f"localization/{_localized(row)}"
    brief = {"verdict": found.verdict.value, "reason": found.reason, "faults": encode(found.faults)}
    steps = [
        {
            "step": step.name,
            "compared": encode(step.compared),
            "verdict": step.localization.verdict.value,
            "reason": step.localization.reason,
            "file": f"{folder}/{LOCALIZATION}" if _explains(step, row) else f"{folder}/{step.name}/{LOCALIZATION}",
        }
        for step in row.localized.steps
    ]
    return brief | {"file": f"{folder}/{LOCALIZATION}", "compared": encode(row.localized.compared), "steps": steps}


def _repair_brief(row: Row) -> dict[str, Any] | None:
    """The same of its repair."""
    found = row.repaired.result
    if found is None:
        return None if row.repaired.problem is None else {"problem": encode(row.repaired.problem)}
    file = f"repair/{_localized(row)}/{REPAIR}"
    return {"mended": found.mended, "words": repair_line(found), "edits": list(found.edits), "file": file}


def _write_model(row: Row, store: Path, folder: Path) -> None:
    if row.ran.artifact is None or folder.exists():
        return
    path = Path(row.ran.artifact.path)
    folder.mkdir(parents=True)
    if path.is_relative_to(store) and path.exists():  # an architecture's models were removed
        copy_model(path, folder / path.name)
    record = {"model": row.ran.artifact, "description": row.ran.description}
    write_json(folder / "provenance.json", encode(record))


def _write_build(row: Row, folder: Path) -> None:
    if row.ran.build is None:
        return
    for file in _build_texts(row.ran.build):
        place = folder / _build_folder(row) / file
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(row.ran.build.folder / file, place)


def _build_texts(build: Build) -> list[Path]:
    """What can be read of a build, relative to its folder: Relax, generated code, what is said of both."""
    files = (path for path in sorted(build.folder.rglob("*")) if path.suffix in _TEXTS and path.name != RECORD)
    return [path.relative_to(build.folder) for path in files]


def _build_folder(row: Row) -> str:
    """Where an audit has those, relative to its folder."""
    return f"runs/{row.name}/{row.backend}/build"


def _write_problem(problem: Problem, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    parts = [problem.message, problem.explanation, problem.traceback, problem.last_words]
    put_text(path, "\n\n".join(part for part in parts if part) + "\n")


def _execution_log(result: AuditResult) -> str:
    lines = []
    for row in result.rows:
        if row.ran.times is not None and row.ran.run is not None:
            reused = ", from an earlier run" if row.ran.reused else ""
            lines.append(
                f"{row.name} on {row.backend}: {row.ran.run.count} inputs, "
                f"mean {row.ran.times.mean:.6f} s, median {row.ran.times.median:.6f} s, "
                f"5 % {row.ran.times.q05:.6f} s, 95 % {row.ran.times.q95:.6f} s{reused}"
            )
        elif row.ran.run is not None:
            lines.append(
                f"{row.name} on {row.backend}: {row.ran.run.count} inputs, no batch after the first of its size"
            )
        else:
            lines.append(f"{row.name} on {row.backend}: {row.reason}")
    return "\n".join(lines) + "\n"


def _csv(result: AuditResult) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(
        [
            *("reference", "candidate", "output", "verdict", "samples", "top1_differs", "overlap"),
            *(
                "rbo",
                "kendall_tau",
                "kl_divergence",
                "max_abs",
                "mean_abs",
                "relative_l2",
                "cosine",
            ),
            *("norm_ratio", "sqnr_db", "nan", "inf", "time_ratio", "time_p_value", "time_corrected_p"),
        ]
    )
    for comparison in result.comparisons:
        for item in comparison.outputs:
            answers, error = item.answers, item.error
            writer.writerow(
                [
                    *(
                        comparison.reference,
                        comparison.candidate,
                        item.pair.reference,
                        item.verdict.value,
                    ),
                    *((answers.samples, answers.top1_differs, answers.overlap) if answers else ("", "", "")),
                    *(
                        (answers.rank_biased_overlap, answers.kendall_tau, answers.kl_divergence)
                        if answers
                        else ("", "", "")
                    ),
                    *(error.max_abs, error.mean_abs, error.relative_l2, error.cosine),
                    *(error.norm_ratio, error.sqnr_db, error.nan_candidate, error.inf_candidate),
                    *(comparison.times.ratio_of_medians, comparison.times.p_value, comparison.times.corrected_p),
                ]
            )
    return stream.getvalue()


def report_json(result: AuditResult) -> dict[str, Any]:
    """The whole audit as a JSON value."""
    return {
        "report_version": REPORT_VERSION,
        "name": result.name,
        "exit_code": result.exit_code,
        "seconds": result.seconds,
        "versions": encode(result.versions),
        "config": encode(result.config),
        "datasets": encode(result.datasets),
        "recipes": encode(result.recipes),
        "notes": list(result.notes),
        "rows": [_audited_row_json(row) for row in result.rows],
        "pairs": encode(result.pairs),
        "backends": [matrix_json(matrix) for matrix in matrices(result)],
    }


def _audited_row_json(row: Row) -> dict[str, Any]:
    value = row_json(row)
    if row.ran.build is not None and _build_texts(row.ran.build):
        value["build"]["folder"] = _build_folder(row)
    return value


def row_json(row: Row) -> dict[str, Any]:
    """A row of the report as a JSON value."""
    return {
        "name": row.name,
        "model": row.model,
        "conversion": row.conversion,
        "backend": row.backend,
        "place": encode(row.place),
        "kind": row.kind,
        "verdict": encode(row.verdict),
        "reason": row.reason,
        "exit_code": row.exit_code,
        "artifact": encode(row.ran.artifact),
        "description": encode(row.ran.description),
        "precision": row.ran.description.precision if row.ran.description else None,
        "intent": row.ran.intent and encode(row.ran.intent) | {"text": row.ran.intent.text},
        "comparison": encode(row.comparison),
        "times": encode(row.ran.times),
        "accuracy": row.ran.accuracy and {"right": row.ran.accuracy[0], "labelled": row.ran.accuracy[1]},
        "problem": encode(row.problem),
        "localization": _localization_brief(row),
        "repair": _repair_brief(row),
        "mending": encode(row.mending),
        "instead_of": row.instead_of or None,
        "advice": encode(row.repaired.advice),
        "reused": row.ran.reused,
        "build": row.ran.build and {"via": row.ran.build.via} | encode(row.ran.build.record),
    }

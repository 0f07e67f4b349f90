"""The record of one run: what was answered to every input, for machines and in the classic text form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conrepair.evaluate.answers import Answers, as_scores, read_answers
from conrepair.evaluate.run import Run
from conrepair.report.encode import encode
from conrepair.report.result import Row
from conrepair.runtime.files import put_text, write_json
from conrepair.runtime.path_text import fitting_name

__all__ = ["write_record"]


def write_record(row: Row, run: Run, names: tuple[str, ...], top_k: int, folder: Path) -> None:
    """Write `run.json` and one text file for every input.

    A text file has the best classes, one "label, score" a line, an empty line, and the seconds.

    Args:
        row: The run's row.
        run: Its outputs.
        names: Of the samples.
        top_k: How many classes.
        folder: Exists already.
    """
    answers = _answers(run, top_k)
    samples = []
    for index, name in enumerate(names[: run.count]):
        seconds = float(run.seconds[index])
        best = _best(answers, index)
        samples.append({"input": name, "top": best, "seconds": seconds})
        if best is not None:
            lines = [f"{label}, {score:.9g}" for label, score in best]
            text = "\n".join([*lines, "", f"{seconds:.6f}", ""])
            put_text(folder / f"{_file_name(name)}.txt", text)
    record: dict[str, Any] = {
        "name": run.name,
        "model": row.ran.artifact,
        "backend": row.backend,
        "precision": run.precision,
        "outputs": run.outputs,
        "arrays": str(run.folder),
        "normalized": answers.normalized if answers else None,
        "batch_starts": run.starts,
        "times": row.ran.times,
        "samples": samples,
    }
    write_json(folder / "run.json", encode(record))


def _answers(run: Run, top_k: int) -> Answers | None:
    """The ranking of the first output, when it's class scores."""
    if not run.outputs:
        return None
    spec = run.outputs[0]
    scores = as_scores(run.arrays[spec.name])
    return None if scores is None else read_answers(scores, top_k, spec, quantized=run.quantized)


def _best(answers: Answers | None, index: int) -> list[tuple[int, float]] | None:
    if answers is None:
        return None
    labels, scores = answers.labels[index], answers.scores[index]
    return [(int(label), float(score)) for label, score in zip(labels, scores, strict=True)]


def _file_name(name: str) -> str:
    """A sample's name as a file name: folders of the dataset become part of it."""
    return fitting_name(name.replace("/", "__"))

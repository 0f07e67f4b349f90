"""The record of one run: what was answered to every input, as a table and in the classic text form."""

from __future__ import annotations

from pathlib import Path

from conrepair.evaluate.answers import BestClasses, as_scores, read_answers
from conrepair.evaluate.run import Run
from conrepair.report.csv_text import csv_text
from conrepair.runtime.file_names import FileNames
from conrepair.runtime.files import put_text

__all__ = ["write_record"]


def write_record(run: Run, names: tuple[str, ...], top_k: int, folder: Path) -> None:
    """Write `answers.csv` and, where the first output is scores of classes, one text file for every input.

    The table has a line for each input: its seconds, and the best classes with their scores. A text file has the best
    classes, one "label, score" a line, an empty line, and the seconds.

    Args:
        run: Its outputs.
        names: Of the samples.
        top_k: How many classes.
        folder: Exists already.
    """
    answers, files = _answers(run, top_k), FileNames()  # folders of the dataset become part of a file's name
    ranks = 0 if answers is None else answers.labels.shape[1]
    columns = [f"{what}_{rank + 1}" for rank in range(ranks) for what in ("class", "score")]
    rows = []
    for index, name in enumerate(names[: run.count]):
        seconds = f"{float(run.seconds[index]):.6f}"
        best = _best(answers, index)
        rows.append([index, name, seconds, *(cell for answer in best for cell in answer)])
        if best:
            text = "\n".join([*(f"{label}, {score:.9g}" for label, score in best), "", seconds, ""])
            put_text(folder / f"{files.of(name, name.replace('/', '__'))}.txt", text)
    put_text(folder / "answers.csv", csv_text(["index", "input", "seconds", *columns], rows))


def _answers(run: Run, top_k: int) -> BestClasses | None:
    """The ranking of the first output, when it's class scores."""
    if not run.outputs or run.outputs[0].name in run.lengths:
        return None
    spec = run.outputs[0]
    scores = as_scores(run.arrays[spec.name])
    return None if scores is None else read_answers(scores, top_k, spec, quantized=run.quantized)


def _best(answers: BestClasses | None, index: int) -> list[tuple[int, float]]:
    if answers is None:
        return []
    labels, scores = answers.labels[index], answers.scores[index]
    return [(int(label), float(score)) for label, score in zip(labels, scores, strict=True)]

"""Every two backends of a model: what JSON, CSV and the console say."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from conrepair.application.pipeline.evaluation import with_corrected_times
from conrepair.application.report.backend_matrix import backends_csv, matrices
from conrepair.application.report.result import AuditResult, Place, Ran, Row
from conrepair.application.report.summary import summary_text
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.metrics.statistics import time_statistics
from conrepair.verdicts.evaluate.compare import Comparison, compare_runs
from conrepair.verdicts.evaluate.run import Run
from conrepair.verdicts.evaluate.tolerance import Tolerance

SAMPLES = 12
PLACES = {
    "libraries": Place("torch"),
    "tvm-llvm-O0": Place("tvm", "llvm", "O0"),
    "tvm-llvm-O3-pi": Place("tvm", "llvm", "O3", "pi", "onnx"),
}


def run(folder: Path, model: str, backend: str, scores: np.ndarray, milliseconds: float, batch: int) -> Run:
    place = folder / model.replace("/", "-") / backend
    place.mkdir(parents=True)
    np.save(place / "output_0.npy", scores)
    jitter = np.random.default_rng(len(backend)).uniform(1, 1.1, SAMPLES)
    np.save(place / "seconds.npy", jitter * milliseconds / 1000)
    return Run(
        name=f"{model}@{backend}",
        outputs=(TensorSpec("scores", ("batch", 5), "float32"),),
        folder=place,
        count=SAMPLES,
        starts=tuple(range(0, SAMPLES, batch)),
    )


def result(folder: Path, models: Sequence[str] = ("net",), batch: int = 1) -> AuditResult:
    """Three backends: the second answers alike in a third of the time, the third gives one other answer."""
    scores = np.random.default_rng(1).normal(size=(SAMPLES, 5)).astype(np.float32)
    other = scores.copy()
    other[3] = -scores[3]
    rows: list[Row] = []
    pairs: list[Comparison] = []
    for model in models:
        runs = [
            run(folder, f"{model}/source", backend, values, milliseconds, batch)
            for (backend, values), milliseconds in zip(
                zip(PLACES, (scores, scores, other), strict=True), (30.0, 10.0, 10.5), strict=True
            )
        ]
        compared = [compare_runs(one, two, Tolerance()) for one, two in combinations(runs, 2)]
        compared = with_corrected_times(compared)
        with_reference = dict(zip(list(PLACES)[1:], compared, strict=False))
        rows += [
            Row(
                model=model,
                conversion="",
                backend=backend,
                kind="reference",
                ran=Ran(run=item, times=time_statistics(item.batch_seconds)),
                comparison=with_reference.get(backend),
                place=place,
            )
            for (backend, place), item in zip(PLACES.items(), runs, strict=True)
        ]
        pairs.append(compared[-1])
    return AuditResult(
        name="test",
        folder=Path("/out"),
        rows=tuple(rows),
        samples={},
        datasets={},
        recipes={},
        pairs=tuple(pairs),
        versions={},
        config={},
        seconds=1.0,
    )


def test_a_matrix_has_every_two_backends(tmp_path: Path) -> None:
    (matrix,) = matrices(result(tmp_path))
    pairs = {(pair.first.backend, pair.second.backend): pair.figures for pair in matrix.pairs}
    assert list(pairs) == list(combinations(PLACES, 2))
    faster = pairs["libraries", "tvm-llvm-O0"]
    assert (faster["top1_differs"], faster["samples"], faster["relative_l2"]) == (0, SAMPLES, 0.0)
    assert faster["time_ratio"] == pytest.approx(1 / 3, rel=0.1)
    assert faster["significant"] is True
    assert faster["corrected_p"] > faster["p_value"]
    assert pairs["tvm-llvm-O0", "tvm-llvm-O3-pi"]["top1_differs"] == 1
    assert pairs["tvm-llvm-O0", "tvm-llvm-O3-pi"]["verdict"] == "faulty"


def test_csv_names_library_setting_and_device(tmp_path: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(backends_csv(matrices(result(tmp_path, ["a", "b"]))))))
    assert [line["model"] for line in lines] == ["a/source"] * 3 + ["b/source"] * 3
    last = lines[-1]
    assert [last[f"first_{key}"] for key in ("library", "target", "setting", "device")] == [
        "tvm",
        "llvm",
        "O0",
        "local",
    ]
    assert [last[f"second_{key}"] for key in ("library", "target", "setting", "importer", "device")] == [
        "tvm",
        "llvm",
        "O3",
        "onnx",
        "pi",
    ]


def test_the_console_shows_a_matrix(tmp_path: Path) -> None:
    text = summary_text(result(tmp_path))
    lines = [line.split() for line in text.splitlines()]
    first = next(line for line in lines if line[:2] == ["1", "libraries"])
    assert first[2].endswith("*")
    assert float(first[2].rstrip("*")) == pytest.approx(1 / 3, rel=0.1)
    third = next(line for line in lines if line[:2] == ["3", "tvm-llvm-O3-pi"])
    assert third[2:4] == [f"1/{SAMPLES}"] * 2
    assert "Mann-Whitney, corrected by Holm for 3 pairs, 5 %" in text
    assert "too few batches" not in text


def test_too_few_batches_are_said(tmp_path: Path) -> None:
    found = result(tmp_path, batch=4)
    assert matrices(found)[0].pairs[0].figures["significant"] is None
    assert "? too few batches for any difference to be significant" in summary_text(found)


def test_many_models_go_to_the_file(tmp_path: Path) -> None:
    text = summary_text(result(tmp_path, ["a", "b", "c", "d", "e"]))
    assert "c/source" in text
    assert "backends.csv compares every two backends of d/source, e/source" in text


def test_two_backends_need_no_matrix(tmp_path: Path) -> None:
    found = result(tmp_path)
    assert (
        matrices(
            AuditResult(
                name="t",
                folder=Path("/out"),
                rows=found.rows[:2],
                samples={},
                datasets={},
                recipes={},
                pairs=found.pairs,
                versions={},
                config={},
                seconds=1.0,
            )
        )
        == []
    )

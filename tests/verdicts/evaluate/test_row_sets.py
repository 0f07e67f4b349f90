"""Rows matched as sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.verdicts.evaluate.compare import ComparedOutputs, compare_outputs
from conrepair.verdicts.evaluate.run import HeldRun
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict

LENGTHS = np.array([3, 5, 4])
GENERATOR = np.random.default_rng(0)
CORNERS = GENERATOR.uniform(0, 90, (12, 2))
BOXES = np.concatenate([CORNERS, CORNERS + GENERATOR.uniform(5, 30, (12, 2))], axis=1).astype(np.float32)
SCORES = np.concatenate([np.sort(GENERATOR.uniform(size=count))[::-1] for count in LENGTHS]).astype(np.float32)
LABELS = GENERATOR.integers(0, 3, 12)


def run(name: str, lengths: np.ndarray = LENGTHS, **changes: Any) -> HeldRun:
    held = {"boxes": BOXES, "scores": SCORES, "labels": LABELS} | changes
    return HeldRun(
        name=name,
        outputs=tuple(TensorSpec(key, ("n", *array.shape[1:]), str(array.dtype)) for key, array in held.items()),
        folder=Path(),
        count=len(lengths),
        held=held,
        rows=dict.fromkeys(held, lengths),
        operators=10,
    )


def taken(order: Any) -> dict[str, np.ndarray]:
    return {"boxes": BOXES[order], "scores": SCORES[order], "labels": LABELS[order]}


def compared(candidate: HeldRun, **others: Any) -> ComparedOutputs:
    return compare_outputs(run("source"), candidate, Tolerance.of(), **others)


def test_the_same_rows() -> None:
    found = compared(run("target"))
    assert found.verdict is Verdict.EQUIVALENT
    assert "rows are matched within each sample" in found.outputs[0].notes[0]


def test_another_order_is_said_as_such() -> None:
    order = np.arange(12)
    order[[3, 4, 5]] = 5, 3, 4
    found = compared(run("target", **taken(order)))
    assert found.verdict is Verdict.FAULTY
    assert (
        "the rows are the same, but in another order in sample 1: code that takes the first row gets another one"
        in found.reason
    )
    assert all(output.error.relative_l2 == 0 for output in found.outputs)


def test_texts_and_rows_of_nothing_are_matched_with_the_others() -> None:
    texts, nothing = LABELS.astype(np.str_), np.zeros((12, 0), np.float32)
    order = np.arange(12)
    order[[3, 4, 5]] = 5, 3, 4
    moved = taken(order) | {"labels": texts[order], "none": nothing}
    found = compare_outputs(run("source", labels=texts, none=nothing), run("target", **moved), Tolerance.of())
    assert "the rows are the same, but in another order in sample 1" in found.reason
    assert all(output.error.relative_l2 == 0 for output in found.outputs)


def test_near_ties_may_change_places() -> None:
    scores = SCORES.copy()
    scores[4] = scores[3] - 1e-7
    order = np.arange(12)
    order[[3, 4]] = 4, 3
    moved = taken(order) | {"scores": scores[order]}
    found = compare_outputs(run("source", scores=scores), run("target", **moved), Tolerance.of())
    assert found.verdict is Verdict.EQUIVALENT
    assert "rows of nearly equal scores are in another order in sample 1" in found.outputs[0].notes


def test_counts_are_told_and_the_others_compared() -> None:
    kept = np.delete(np.arange(12), 4)
    found = compared(run("target", np.array([3, 4, 4]), **taken(kept)))
    assert found.verdict is Verdict.FAULTY
    assert (
        "the original gives 5 rows for sample 1, the converted model 4 (of the rows that both models give: "
        in found.reason
    )
    assert all(output.error.relative_l2 == 0 for output in found.outputs)


def test_rows_are_told_from_one_another_by_overlap() -> None:
    moved = (BOXES + 0.5).astype(np.float32)
    found = compared(run("target", np.array([3, 5, 3]), **(taken(np.arange(11)) | {"boxes": moved[:11]})))
    [boxes] = [output for output in found.outputs if output.pair.reference == "boxes"]
    assert boxes.error.max_abs == pytest.approx(0.5, rel=1e-4)


def test_a_source_that_has_other_rows_itself_accuses_nobody() -> None:
    kept = np.delete(np.arange(12), 4)
    fewer = run("target", np.array([3, 4, 4]), **taken(kept))
    found = compared(fewer, second_opinion=run("second", np.array([3, 4, 4]), **taken(kept)))
    assert found.verdict is Verdict.UNDECIDED
    assert "the original gives other rows, too, when it is computed in another arithmetic" in found.reason


def test_nothing_can_be_told_from_no_rows() -> None:
    none = taken(np.arange(0))
    lengths = np.zeros(3, np.int64)
    found = compare_outputs(run("source", lengths, **none), run("target", lengths, **none), Tolerance.of())
    assert found.verdict is Verdict.UNDECIDED
    assert "neither model gives a row for any sample" in found.reason


def test_one_size_in_all_samples_beside_several() -> None:
    fixed = HeldRun(
        name="target",
        outputs=(TensorSpec("boxes", (3, 5, 4), "float32"),),
        folder=Path(),
        count=3,
        held={"boxes": np.zeros((3, 5, 4), np.float32)},
    )
    source = HeldRun(
        name="source",
        outputs=(TensorSpec("boxes", ("n", 4), "float32"),),
        folder=Path(),
        count=3,
        held={"boxes": BOXES},
        rows={"boxes": LENGTHS},
    )
    found = compare_outputs(source, fixed, Tolerance.of())
    assert found.verdict is Verdict.FAULTY
    assert (
        "the original gives 3 rows for sample 0, the converted model 5 (and another number in 1 more samples)"
        in found.reason
    )


def test_one_of_many_rows() -> None:
    """Too many to be assigned: what's the same in front of it and behind it tells which one it is."""
    count = 5000
    values = np.arange(count, dtype=np.int64).reshape(-1, 1)
    lengths = np.array([count, 0, 0])
    source = run("source", lengths, boxes=values, scores=values[:, 0], labels=values[:, 0])
    kept = np.delete(np.arange(count), 1234)
    fewer = {name: array[kept] for name, array in source.held.items()}
    found = compare_outputs(source, run("target", np.array([count - 1, 0, 0]), **fewer), Tolerance.of())
    assert (
        "the original gives 5000 rows for sample 0, the converted model 4999 (of the rows that both "
        "models give: all 4999 integers are equal)"
    ) in found.reason

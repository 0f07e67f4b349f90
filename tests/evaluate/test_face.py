"""What callers of a model get otherwise, whatever the numbers are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conrepair.data.tensor_spec import Quantization, TensorSpec
from conrepair.evaluate.compare import ComparedOutputs, compare_outputs
from conrepair.evaluate.run import HeldRun
from conrepair.evaluate.tolerance import Tolerance
from conrepair.evaluate.verdict import Verdict

A = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
B = np.round(3 * A)


def run(name: str = "", *, quantization: Quantization | None = None, **arrays: np.ndarray) -> HeldRun:
    specs = tuple(
        TensorSpec(key, ("batch", *array.shape[1:]), str(array.dtype), quantization) for key, array in arrays.items()
    )
    return HeldRun(name=name, outputs=specs, folder=Path(), count=len(A), held=arrays)


def compared(reference: HeldRun, candidate: HeldRun) -> ComparedOutputs:
    return compare_outputs(reference, candidate, Tolerance())


def test_outputs_in_another_order() -> None:
    result = compared(run(a=A, b=B), run(b=B, a=A))
    assert (result.verdict, result.differs) == (Verdict.FAULTY, False)
    assert "in the order `b`, `a`, the source's in the order `a`, `b`" in result.reason


@pytest.mark.parametrize("change", [lambda run: dataclasses.replace(run, ordered=False), lambda run: run])
def test_order_is_not_asked_of_names_alone(change: Callable[[HeldRun], HeldRun]) -> None:
    other = run(b=B, a=A) if not change(run(a=A)).ordered else run(x=A, y=B)
    assert compared(run(a=A, b=B), change(other)).verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize(("ours", "theirs"), [("float32", "int32"), ("int64", "float32"), ("float32", "bool")])
def test_real_numbers_that_became_whole_ones(ours: str, theirs: str) -> None:
    whole = (B > 0).astype(np.float32)
    result = compared(run(a=whole.astype(ours)), run(a=whole.astype(theirs)))
    assert result.verdict is Verdict.FAULTY
    assert f"output `a` is {theirs}, the source's `a` is {ours}" in result.reason


@pytest.mark.parametrize(("ours", "theirs"), [("float32", "float16"), ("int64", "int32"), ("int64", "bool")])
def test_widths_are_no_other_face(ours: str, theirs: str) -> None:
    whole = (B > 0).astype(np.float32)
    assert compared(run(a=whole.astype(ours)), run(a=whole.astype(theirs))).verdict is Verdict.EQUIVALENT


def test_stored_integers_stand_for_real_numbers() -> None:
    stored = B.astype(np.int8)
    result = compared(run(a=B), run(a=stored, quantization=Quantization(1.0, 0)))
    assert result.verdict is Verdict.EQUIVALENT


def test_another_number_of_axes() -> None:
    result = compared(run(a=A), run(y=A[:, :, None, None]))
    assert result.verdict is Verdict.FAULTY
    words = "output `y` has 4 axes ([batch, 4, 1, 1]), the source's `a` 2 ([batch, 4])"
    assert result.reason.startswith(words)
    assert "(its numbers: equivalent" in result.reason


def test_wrong_numbers_come_first() -> None:
    result = compared(run(a=A), run(a=(2 * A)[:, :, None]))
    assert result.differs
    assert result.reason.startswith("relative error")
    assert list(result.face) == ["a"]

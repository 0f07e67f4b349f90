"""Which precision a model was meant to have, and what that changes in its verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conrepair.config.model import ToleranceConfig
from conrepair.data.tensor_spec import TensorSpec
from conrepair.evaluate.compare import Comparison, compare_runs
from conrepair.evaluate.intent import Intent
from conrepair.evaluate.run import Run
from conrepair.evaluate.verdict import Verdict, coarser

QUANTIZED = "quantized weights"


@pytest.mark.parametrize(
    ("intent", "quantized", "rounding", "text"),
    [
        (Intent("float32"), False, "float32", "float32"),
        (Intent("float32", None, "float32"), False, "float32", "float32"),
        (Intent(QUANTIZED, "int8", "float32"), True, "float32", "int8 (asked for)"),
        (Intent("full-integer quantized", "int8", "float32"), True, "float32", "int8 (asked for)"),
        (Intent("float32", "int8", "float32"), True, "float32", "int8 (asked for; most weights are float32)"),
        (Intent("float16", "float16", "float32"), False, "float16", "float16 (asked for)"),
        (Intent(QUANTIZED), True, "float32", "quantized weights (found in file)"),
        (Intent("float16"), False, "float16", "float16 (found in file)"),
        (Intent(QUANTIZED, None, "full-integer quantized"), True, "float32", "quantized weights (as the source)"),
        (Intent("float16", None, "float16"), False, "float16", "float16 (as the source)"),
        (Intent(QUANTIZED, None, "float32"), False, "float32", "quantized weights (nobody asked for it)"),
        (Intent("float16", None, "float32"), False, "float32", "float16 (nobody asked for it)"),
        (Intent("bfloat16", None, "float16"), False, "float16", "bfloat16 (nobody asked for it)"),
    ],
)
def test_what_is_meant(intent: Intent, quantized: bool, rounding: str, text: str) -> None:
    assert (intent.quantized, intent.precision, intent.text) == (quantized, rounding, text)


def test_what_is_complained_about() -> None:
    assert Intent(QUANTIZED, "int8", "float32").complaint is None
    assert Intent(QUANTIZED).complaint is None
    assert "most of its weights are quantized, and nobody asked" in str(Intent(QUANTIZED, None, "float32").complaint)
    assert "asked for: int8; but most" in str(Intent("float32", "int8", "float32").complaint)


MakeRun = Callable[..., Run]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    def make(name: str, array: np.ndarray, intent: Intent | None = None) -> Run:
        folder = tmp_path / name
        folder.mkdir()
        np.save(folder / "output_0.npy", array)
        np.save(folder / "seconds.npy", np.full(len(array), 0.01))
        specs = (TensorSpec("y", ("batch", *array.shape[1:]), "float32"),)
        found = intent.found if intent else "float32"
        return Run(
            name,
            specs,
            folder,
            len(array),
            quantized=found == QUANTIZED,
            precision=found,
            operators=100,
            intent=intent,
        )

    return make


def compare(make_run: MakeRun, error: float, intent: Intent | None) -> Comparison:
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(20, 30)).astype(np.float32) * 5
    changed = (scores * (1 + error * generator.normal(size=scores.shape))).astype(np.float32)
    return compare_runs(make_run("source", scores), make_run("target", changed, intent), ToleranceConfig())


@pytest.mark.parametrize("intent", [Intent(QUANTIZED, "int8", "float32"), Intent(QUANTIZED), None])
def test_quantization_that_was_meant_has_a_budget(make_run: MakeRun, intent: Intent | None) -> None:
    expected = Verdict.FAULTY if intent is None else Verdict.QUANTIZED
    assert compare(make_run, 0.01, intent).verdict is expected


def test_what_was_asked_for_counts_more_than_what_most_weights_are(make_run: MakeRun) -> None:
    result = compare(make_run, 0.01, Intent("float32", "int8 weights", "float32"))
    assert result.verdict is Verdict.QUANTIZED
    assert result.outputs[0].notes == ("asked for: int8 weights; but most of its weights are float32",)


def test_quantization_that_nobody_asked_for_is_a_fault(make_run: MakeRun) -> None:
    result = compare(make_run, 0.01, Intent(QUANTIZED, None, "float32"))
    assert result.verdict is Verdict.FAULTY
    assert "most of its weights are quantized, and nobody asked for that" in result.reason


def test_quantization_that_nobody_asked_for_is_said_even_when_it_changes_nothing(make_run: MakeRun) -> None:
    result = compare(make_run, 1e-6, Intent(QUANTIZED, None, "float32"))
    assert result.verdict is Verdict.EQUIVALENT
    assert result.outputs[0].notes == ("most of its weights are quantized, and nobody asked for that",)


def test_half_precision_has_its_own_rounding(make_run: MakeRun) -> None:
    result = compare(make_run, 3e-3, Intent("float16", "float16", "float32"))
    assert result.verdict is Verdict.NOISE
    assert "10 times float16's rounding error (9.8e-03, estimated)" in result.reason
    assert result.outputs[0].floor == pytest.approx(2.0**-10 * 10)


def test_half_precision_that_nobody_asked_for_is_a_fault(make_run: MakeRun) -> None:
    result = compare(make_run, 3e-3, Intent("float16", None, "float32"))
    assert result.verdict is Verdict.FAULTY
    assert "most of its weights are float16, and nobody asked for that" in result.reason


def test_half_precision_on_either_side_counts(make_run: MakeRun) -> None:
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(20, 30)).astype(np.float32)
    half = make_run("half", scores.astype(np.float16).astype(np.float32), Intent("float16", "float16", "float32"))
    full = make_run("full", scores)
    assert compare_runs(half, full, ToleranceConfig()).verdict is Verdict.NOISE
    plain = dataclasses.replace(half, intent=Intent("float32"), precision="float32")
    assert compare_runs(plain, full, ToleranceConfig()).verdict is Verdict.FAULTY
    assert coarser("float32", "float16") == coarser("float16", "float32") == "float16"
    assert coarser("bfloat16", "float16") == "bfloat16"

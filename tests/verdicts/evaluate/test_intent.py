"""Which precision a model was meant to have, and what that changes in its verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conrepair.ground.data.tensor_spec import Quantization, TensorSpec
from conrepair.verdicts.evaluate.compare import Comparison, compare_runs
from conrepair.verdicts.evaluate.run import Intent, Run
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging.floor import coarser

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
        (Intent(QUANTIZED), True, "float32", "quantized weights (found in the file)"),
        (Intent("float16"), False, "float16", "float16 (found in the file)"),
        (
            Intent(QUANTIZED, None, "full-integer quantized"),
            True,
            "float32",
            "quantized weights (as in the original)",
        ),
        (Intent("float16", None, "float16"), False, "float16", "float16 (as in the original)"),
        (Intent("mixed float16"), False, "float16", "mixed float16 (found in the file)"),
        (Intent("float16", None, "mixed float16"), False, "float16", "float16 (as in the original)"),
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
    assert "int8 was asked for, but most" in str(Intent("float32", "int8", "float32").complaint)


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
            name=name,
            outputs=specs,
            folder=folder,
            count=len(array),
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
    return compare_runs(make_run("source", scores), make_run("target", changed, intent), Tolerance())


@pytest.mark.parametrize("intent", [Intent(QUANTIZED, "int8", "float32"), Intent(QUANTIZED), None])
def test_quantization_that_was_meant_has_a_budget(make_run: MakeRun, intent: Intent | None) -> None:
    expected = Verdict.FAULTY if intent is None else Verdict.QUANTIZED
    assert compare(make_run, 0.01, intent).verdict is expected


def test_what_was_asked_for_counts_more_than_what_most_weights_are(make_run: MakeRun) -> None:
    result = compare(make_run, 0.01, Intent("float32", "int8 weights", "float32"))
    assert result.verdict is Verdict.QUANTIZED
    assert result.outputs[0].notes == ("int8 weights was asked for, but most of its weights are float32",)


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
    assert "10 times float16's rounding error (0.98 %, estimated)" in result.reason
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
    assert compare_runs(half, full, Tolerance()).verdict is Verdict.NOISE
    plain = dataclasses.replace(half, intent=Intent("float32"), precision="float32")
    assert compare_runs(plain, full, Tolerance()).verdict is Verdict.FAULTY
    assert coarser("float32", "float16") == coarser("float16", "float32") == "float16"
    assert coarser("bfloat16", "float16") == "bfloat16"


def quantized_already(
    make_run: MakeRun, error: float, second: float | None, asked: str | None = None, **source: Any
) -> Comparison:
    """A source in eight bits of 100 operators, and a target of it that is in real numbers; no class scores."""
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(20, 15, 2)).astype(np.float32) * 5
    noise = generator.normal(size=(2, *scores.shape)).astype(np.float32) * np.sqrt(np.mean(scores**2))
    reference = dataclasses.replace(make_run("source", scores, Intent(QUANTIZED)), **source)
    candidate = make_run("target", scores + error * noise[0], Intent("float32", asked, QUANTIZED))
    again = None if second is None else make_run("again", (scores + second * noise[1])[:16])
    return compare_runs(reference, candidate, Tolerance(), second_opinion=again)


@pytest.mark.parametrize(
    ("error", "second", "verdict"),
    [
        (0.04, 0.02, Verdict.QUANTIZED),  # EfficientNet-Lite0 by XNNPACK, TFLite and ONNX Runtime
        (0.07, 0.0, Verdict.QUANTIZED),
        (0.09, 0.04, Verdict.QUANTIZED),
        (0.2, 0.02, Verdict.FAULTY),  # a scale that is half as large again
        (0.09, 0.02, Verdict.FAULTY),
        (0.2, 0.1, Verdict.UNDECIDED),  # badly conditioned
        (0.2, 0.0, Verdict.UNDECIDED),  # the same kernels twice measure nothing
        (0.2, None, Verdict.UNDECIDED),
        (2.0, None, Verdict.FAULTY),
    ],
)
def test_a_source_in_eight_bits_has_nothing_to_lose_by_quantization(
    make_run: MakeRun, error: float, second: float | None, verdict: Verdict
) -> None:
    result = quantized_already(make_run, error, second)
    assert result.verdict is verdict, result.reason


def test_a_budget_is_owed_where_a_quantized_source_is_quantized_again(make_run: MakeRun) -> None:
    assert quantized_already(make_run, 0.2, 0.02, "int8").verdict is Verdict.QUANTIZED


@pytest.mark.parametrize(("error", "verdict"), [(1e-7, Verdict.EQUIVALENT), (0.01, Verdict.UNDECIDED), (0.1, Verdict.FAULTY)])  # fmt: skip  # noqa: E501
def test_weights_in_eight_bits_and_real_arithmetic(make_run: MakeRun, error: float, verdict: Verdict) -> None:
    """Its own kernels agree as those of real numbers do, so integers explain little; unless operators round."""
    assert quantized_already(make_run, error, 2e-7).verdict is verdict


def test_operators_that_round_are_believed(make_run: MakeRun) -> None:
    assert quantized_already(make_run, 0.01, 2e-7, rounds=True, arithmetic=50).verdict is Verdict.QUANTIZED


def test_one_step_of_an_output_is_what_integer_kernels_differ_by(make_run: MakeRun) -> None:
    levels = np.random.default_rng(0).integers(0, 4, (20, 30)).astype(np.float32)
    steps = levels.copy()
    steps[:, ::2] += 1
    spec = TensorSpec("y", ("batch", 30), "uint8", Quantization(0.5, 0))
    intent = Intent("full-integer quantized")
    reference = dataclasses.replace(make_run("source", levels * 0.5, intent), outputs=(spec,))
    target = make_run("target", steps * np.float32(0.5), Intent("float32", None, "full-integer quantized"))
    result = compare_runs(reference, target, Tolerance())
    assert result.verdict is Verdict.QUANTIZED
    assert "no element differs by more than a step" in result.reason


def test_targets_of_one_real_source_keep_their_budget_among_themselves(make_run: MakeRun) -> None:
    """Neither is the other's specification."""
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(20, 15, 2)).astype(np.float32) * 5
    noise = generator.normal(size=scores.shape).astype(np.float32)
    source = make_run("source", scores, Intent())
    given = make_run("given", scores + noise, Intent(QUANTIZED))
    other = make_run("other", scores, Intent())
    alone = compare_runs(given, other, Tolerance())
    siblings = compare_runs(given, other, Tolerance(), source=source)
    assert (alone.verdict, siblings.verdict) == (Verdict.UNDECIDED, Verdict.QUANTIZED)

"""Runs against runs: what is called equal, noise, quantized, faulty."""

from __future__ import annotations

import dataclasses
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from conrepair.ground.data.tensor_spec import Quantization, TensorSpec
from conrepair.verdicts.evaluate.compare import accuracy, compare_runs
from conrepair.verdicts.evaluate.run import Run
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict

MakeRun = Callable[..., Run]
SAMPLES = 40


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    def make(
        name: str,
        *arrays: np.ndarray,
        names: tuple[str, ...] | None = None,
        quantization: Quantization | None = None,
        dtype: str | None = None,
        quantized: bool = False,
        operators: int = 100,
    ) -> Run:
        folder = tmp_path / name
        folder.mkdir()
        specs = []
        for index, array in enumerate(arrays):
            np.save(folder / f"output_{index}.npy", array)
            label = names[index] if names else f"output_{index}"
            shape = ("batch", *array.shape[1:])
            specs.append(TensorSpec(label, shape, dtype or array.dtype.name, quantization))
        np.save(folder / "seconds.npy", np.full(len(arrays[0]), 0.01))
        return Run(
            name=name,
            outputs=tuple(specs),
            folder=folder,
            count=len(arrays[0]),
            quantized=quantized,
            operators=operators,
        )

    return make


@pytest.fixture
def logits() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(SAMPLES, 50)).astype(np.float32) * 5


def judge(reference: Run, candidate: Run, **options: float | None) -> Verdict:
    return compare_runs(reference, candidate, Tolerance.of(**options)).verdict


def test_equal_outputs_are_equivalent(make_run: MakeRun, logits: np.ndarray) -> None:
    result = compare_runs(make_run("a", logits), make_run("b", logits), Tolerance())
    assert result.verdict is Verdict.EQUIVALENT
    (output,) = result.outputs
    assert output.answers is not None
    assert output.answers.top1_differs == 0
    assert output.answers.kendall_tau == 1.0
    assert output.answers.rank_biased_overlap == pytest.approx(1.0)
    assert output.answers.kl_divergence == pytest.approx(0.0, abs=1e-12)


def test_rounding_is_noise_and_more_is_a_fault(make_run: MakeRun, logits: np.ndarray) -> None:
    generator = np.random.default_rng(1)
    noise = generator.normal(size=logits.shape)
    reference = make_run("a", logits)
    second = make_run("second", (logits * (1 + 3e-6 * noise)).astype(np.float64)[:16])
    rounded = make_run("b", (logits * (1 + 5e-6 * generator.normal(size=logits.shape))).astype(np.float32))
    result = compare_runs(
        reference, rounded, Tolerance.of(rtol=0, atol=1e-9, relative_l2=1e-9), second_opinion=second
    )
    assert result.verdict is Verdict.NOISE
    assert result.outputs[0].floor_measured
    shifted = make_run("c", (logits * (1 + 1e-3 * noise)).astype(np.float32))
    assert compare_runs(reference, shifted, Tolerance(), second_opinion=second).verdict is Verdict.FAULTY


def test_a_source_that_differs_from_itself_decides_nothing(make_run: MakeRun, logits: np.ndarray) -> None:
    """In float64, by a fifth: a target that differs as much isn't accused, one that differs more is."""
    noise = np.random.default_rng(1).normal(size=(3, *logits.shape))
    second = dataclasses.replace(make_run("second", (logits * (1 + 0.2 * noise[0]))[:16]), exact=True)
    reference, tolerance = make_run("a", logits), Tolerance()
    for size, verdict in ((0.3, Verdict.UNDECIDED), (0.8, Verdict.FAULTY)):
        other = make_run(f"b{size}", logits * (1 + size * noise[1]).astype(np.float32))
        result = compare_runs(reference, other, tolerance, second_opinion=second)
        assert result.verdict is verdict, result.reason


def test_a_second_opinion_that_is_itself_wrong_excuses_nothing(make_run: MakeRun, logits: np.ndarray) -> None:
    second = make_run("second", logits[:16] * 1.5)
    faulty = make_run("b", logits * np.float32(1.01))
    result = compare_runs(make_run("a", logits), faulty, Tolerance(), second_opinion=second)
    assert result.verdict is Verdict.FAULTY
    assert not result.outputs[0].floor_measured


def test_a_fault_that_softmax_hides_is_still_a_fault(make_run: MakeRun) -> None:
    """Every probability is within any usual absolute tolerance, the whole is not."""
    logits = np.random.default_rng(0).normal(size=(SAMPLES, 1000)) * 0.01
    wrong = logits + np.random.default_rng(1).normal(size=logits.shape) * 1e-3
    one, two = (softmax(values, axis=1).astype(np.float32) for values in (logits, wrong))
    assert np.abs(one - two).max() < 1e-5
    result = compare_runs(make_run("a", one), make_run("b", two), Tolerance())
    assert result.outputs[0].error.within_tolerance
    assert result.verdict is Verdict.FAULTY


def test_no_rounding_excuses_everything(make_run: MakeRun, logits: np.ndarray) -> None:
    """However badly conditioned the source is: zeros and other samples' answers are faults."""
    second = make_run("second", logits[:16].astype(np.float64) * 1.5)
    reference = make_run("a", logits)
    for name, wrong in {"zeros": np.zeros_like(logits), "rows": logits[::-1].copy()}.items():
        result = compare_runs(
            reference, make_run(name, wrong), Tolerance(), second_opinion=replace(second, exact=True)
        )
        assert result.verdict is Verdict.FAULTY


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_on_both_sides_proves_nothing(make_run: MakeRun, logits: np.ndarray, value: float) -> None:
    few, most = logits.copy(), np.full_like(logits, value)
    few[:3] = value
    few[5, 0] = value
    result = compare_runs(make_run("a", few), make_run("b", few), Tolerance())
    assert result.verdict is Verdict.EQUIVALENT
    words = "151 of 2000 values are NaN or infinite in both models; 3 of 40 samples have no finite value"
    assert result.outputs[0].notes == (words,)
    most[20:, 1:] = logits[20:, 1:]  # 1020 of 2000
    result = compare_runs(make_run("c", most), make_run("d", most), Tolerance())
    assert result.verdict is Verdict.UNDECIDED
    assert result.reason == (
        "1020 of 2000 values are NaN or infinite in both models; 20 of 40 samples have no finite value: "
        "can't tell whether the conversion is right"
    )


def test_a_softmax_that_a_converter_dropped_is_a_fault(make_run: MakeRun, logits: np.ndarray) -> None:
    probabilities = softmax(logits.astype(np.float64), axis=1).astype(np.float32)
    elsewhere = make_run("b", logits)
    ours = replace(elsewhere, name="c", converted=True)
    reference = make_run("a", probabilities)
    assert judge(reference, elsewhere) in {Verdict.EQUIVALENT, Verdict.NOISE}
    assert judge(reference, ours) is Verdict.FAULTY


def test_given_tolerances_decide_alone(make_run: MakeRun, logits: np.ndarray) -> None:
    reference, other = make_run("a", logits), make_run("b", logits + np.float32(0.01))
    assert judge(reference, other) is Verdict.FAULTY
    assert judge(reference, other, atol=0.02, rtol=0.0, relative_l2=None) is Verdict.EQUIVALENT


def test_scaling_is_a_fault_although_cosine_is_one(make_run: MakeRun, logits: np.ndarray) -> None:
    result = compare_runs(make_run("a", logits), make_run("b", 2 * logits), Tolerance())
    assert result.verdict is Verdict.FAULTY
    assert result.outputs[0].error.cosine == pytest.approx(1.0)
    assert result.outputs[0].error.norm_ratio == pytest.approx(2.0)
    assert result.outputs[0].answers is not None
    assert result.outputs[0].answers.top1_differs == 0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_no_number_is_a_fault(make_run: MakeRun, logits: np.ndarray, value: float) -> None:
    bad = logits.copy()
    bad[3, 4] = value
    result = compare_runs(make_run("a", logits), make_run("b", bad), Tolerance())
    assert result.verdict is Verdict.FAULTY
    assert "1 NaN" in result.reason or "1 infinite" in result.reason


def test_probabilities_against_scores_are_compared_as_probabilities(make_run: MakeRun, logits: np.ndarray) -> None:
    probabilities = softmax(logits.astype(np.float64), axis=1).astype(np.float32)
    result = compare_runs(make_run("a", logits), make_run("b", probabilities), Tolerance())
    assert result.verdict in {Verdict.EQUIVALENT, Verdict.NOISE}
    assert "compared as probabilities" in result.outputs[0].notes[0]


def test_a_quantized_softmax_is_known_by_its_range(make_run: MakeRun) -> None:
    """Its rows don't add up to 1: most classes are rounded to 0."""
    logits = np.random.default_rng(0).normal(size=(SAMPLES, 1000)).astype(np.float32) * 3
    flat = softmax(logits.astype(np.float64), axis=1)
    step = 1 / 256
    stored = np.round(flat / step) * step
    assert abs(stored.sum(axis=1) - 1).max() > 0.05
    candidate = make_run(
        "b", stored.astype(np.float32), quantization=Quantization(step, 0), dtype="uint8", quantized=True
    )
    result = compare_runs(make_run("a", logits), candidate, Tolerance())
    assert "compared as probabilities" in result.outputs[0].notes[0]
    assert result.verdict is Verdict.QUANTIZED


@pytest.mark.parametrize("steps", [255, 256])
def test_a_quantized_softmax_in_floats_is_known_by_its_steps(make_run: MakeRun, steps: int) -> None:
    """Of many classes, most are rounded to 0, so the sums are far from 1."""
    logits = np.random.default_rng(0).normal(size=(SAMPLES, 400)).astype(np.float32)
    values = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    stored = (np.rint(values * steps) / steps).astype(np.float32)
    result = compare_runs(make_run("a", values), make_run("b", stored, quantized=True), Tolerance())
    assert not any("compared as probabilities" in note for note in result.outputs[0].notes)
    assert result.outputs[0].error.cosine > 0.5
    other = make_run("c", (stored * 1.03).astype(np.float32), quantized=True)
    assert compare_runs(make_run("d", values), other, Tolerance()).outputs[0].notes


def test_a_quantized_target_beyond_its_budget_is_a_fault(make_run: MakeRun, logits: np.ndarray) -> None:
    wrong = np.roll(logits, 1, axis=1)
    result = compare_runs(make_run("a", logits), make_run("b", wrong, quantized=True), Tolerance())
    assert result.verdict is Verdict.FAULTY
    assert "error above the limit" in result.reason


def test_a_background_class_in_front_is_left_out(make_run: MakeRun) -> None:
    scores = np.random.default_rng(0).normal(size=(SAMPLES, 1000)).astype(np.float32)
    with_background = np.concatenate([np.full((SAMPLES, 1), 9, np.float32), scores], axis=1)
    one, two = make_run("a", scores), make_run("b", with_background)
    assert judge(one, two) is Verdict.EQUIVALENT
    assert judge(two, one) is Verdict.EQUIVALENT
    labels = [int(label) for label in scores.argmax(axis=1)]
    assert accuracy(one, labels) == (SAMPLES, SAMPLES)


def test_outputs_are_paired_by_name_then_by_shape(make_run: MakeRun) -> None:
    generator = np.random.default_rng(0)
    boxes = generator.normal(size=(SAMPLES, 4)).astype(np.float32)
    scores = generator.normal(size=(SAMPLES, 7)).astype(np.float32)
    reference = make_run("a", boxes, scores, names=("boxes", "scores"))
    result = compare_runs(reference, make_run("b", scores, boxes, names=("scores", "boxes")), Tolerance())
    assert [output.verdict for output in result.outputs] == [Verdict.EQUIVALENT] * 2
    assert result.verdict is Verdict.FAULTY, "whoever reads them by their place gets another"
    assert judge(reference, make_run("c", scores, boxes, names=("x", "y"))) is Verdict.EQUIVALENT


def test_a_name_that_stands_for_another_tensor_is_a_fault(make_run: MakeRun) -> None:
    boxes, scores = np.ones((SAMPLES, 4), np.float32), np.ones((SAMPLES, 7), np.float32)
    reference = make_run("a", boxes, scores, names=("boxes", "scores"))
    assert judge(reference, make_run("b", scores, boxes, names=("boxes", "scores"))) is Verdict.FAULTY


def test_swapped_outputs_of_one_shape_are_a_fault(make_run: MakeRun) -> None:
    generator = np.random.default_rng(0)
    one, two = (generator.normal(size=(SAMPLES, 4)).astype(np.float32) for _ in range(2))
    reference = make_run("a", one, two, names=("left", "right"))
    assert judge(reference, make_run("b", two, one, names=("left", "right"))) is Verdict.FAULTY


def test_a_missing_output_is_a_fault(make_run: MakeRun, logits: np.ndarray) -> None:
    result = compare_runs(make_run("a", logits, logits[:, :9]), make_run("b", logits), Tolerance())
    assert result.verdict is Verdict.FAULTY
    assert "no output that fits output_1" in result.reason


def test_layouts_of_outputs_are_found_from_the_data(make_run: MakeRun) -> None:
    maps = np.random.default_rng(0).normal(size=(SAMPLES, 6, 6, 6)).astype(np.float32)
    reference = make_run("a", maps)
    assert judge(reference, make_run("b", np.ascontiguousarray(maps.transpose(0, 2, 3, 1)))) is Verdict.EQUIVALENT
    swapped = np.ascontiguousarray(maps.transpose(0, 1, 3, 2))  # height for width: no layout explains it
    assert judge(reference, make_run("c", swapped)) is Verdict.FAULTY


def test_axes_of_length_one_do_not_matter_to_numbers(make_run: MakeRun, logits: np.ndarray) -> None:
    other = make_run("b", logits[:, :, None, None])
    result = compare_runs(make_run("a", logits), other, Tolerance())
    assert [output.verdict for output in result.outputs] == [Verdict.EQUIVALENT]
    assert result.verdict is Verdict.FAULTY, "callers get another number of axes"


def test_accuracy_counts_labelled_samples_only(make_run: MakeRun, logits: np.ndarray) -> None:
    best = logits.argmax(axis=1)
    labels: list[int | None] = [int(label) for label in best]
    labels[0] = (int(best[0]) + 1) % 50
    labels[1] = None
    assert accuracy(make_run("a", logits), labels) == (SAMPLES - 2, SAMPLES - 1)
    assert accuracy(make_run("b", logits), [None] * SAMPLES) is None


def test_integers_are_equal_or_not(make_run: MakeRun) -> None:
    """Token ids that are 2 apart are other tokens, however large they are."""
    ids = np.random.default_rng(0).integers(30_000, 40_000, (16, 8))
    other = ids.astype(np.int32)
    other[0, 7] += 2
    other[3, 1] -= 1
    reference = make_run("a", ids)
    assert judge(reference, make_run("same", ids.astype(np.int32))) is Verdict.EQUIVALENT
    result = compare_runs(reference, make_run("b", other), Tolerance())
    assert result.verdict is Verdict.FAULTY
    assert (
        result.reason
        == f"2 of 128 integers differ; the first, at index [0, 7], is {ids[0, 7] + 2} instead of {ids[0, 7]}"
    )
    assert result.outputs[0].error.exceeding == 2


def test_integers_have_a_tolerance_where_it_is_asked_for(make_run: MakeRun) -> None:
    ids = np.arange(30_000, 30_128).reshape(16, 8)
    runs = make_run("a", ids), make_run("b", ids + 2)
    for given in ({"atol": 2.0}, {"rtol": 1e-4}):
        assert judge(*runs, **given, relative_l2=None) is Verdict.EQUIVALENT
    assert judge(*runs, atol=1.0, rtol=0.0, relative_l2=None) is not Verdict.EQUIVALENT
    assert judge(*runs, relative_l2=0.1) is Verdict.FAULTY


def test_truth_values_count_as_numbers(make_run: MakeRun) -> None:
    mask = np.random.default_rng(0).random((10, 6)) > 0.5
    reference = make_run("a", mask)
    assert judge(reference, make_run("b", mask.astype(np.int64))) is Verdict.EQUIVALENT
    other = mask.copy()
    other[9, 5] = ~other[9, 5]
    result = compare_runs(reference, make_run("c", other), Tolerance())
    assert (result.verdict, result.reason[:49]) == (
        Verdict.FAULTY,
        "1 of 60 booleans differ; the first, at index [9, ",
    )


def test_integers_that_float64_does_not_hold(make_run: MakeRun) -> None:
    large = np.full((4, 3), 2**53, np.int64)
    other = large.copy()
    other[2, 1] += 1
    result = compare_runs(make_run("a", large), make_run("b", other), Tolerance())
    assert result.verdict is Verdict.FAULTY
    assert result.reason == f"1 of 12 integers differ; the first, at index [2, 1], is {2**53 + 1} instead of {2**53}"
    assert result.outputs[0].error.max_abs == 1


def test_integers_that_rounding_decides_about_accuse_nobody(make_run: MakeRun) -> None:
    """The source gives a tenth of its best classes otherwise in float64; as many others are no proof of a fault."""
    best = np.random.default_rng(0).integers(0, 9, (SAMPLES, 10))
    second, tied, wrong = best[:16].copy(), best.copy(), best.copy()
    second[:, 0] += 1
    tied[:, 5] += 1
    wrong[:, 5:7] += 1
    reference, again = make_run("a", best), make_run("second", second)
    result = compare_runs(reference, make_run("b", tied), Tolerance(), second_opinion=again)
    assert result.verdict is Verdict.UNDECIDED
    assert "40 of 400 integers differ" in result.reason
    assert "the original model itself changes 10 % of them" in result.reason
    result = compare_runs(reference, make_run("c", wrong), Tolerance(), second_opinion=again)
    assert result.verdict is Verdict.FAULTY


def test_best_classes_of_a_narrower_target(make_run: MakeRun) -> None:
    """Quantization has the budget of the top-1 answers; half precision may decide between near equals."""
    best = np.random.default_rng(0).integers(0, 9, (SAMPLES, 1))
    some, many = best.copy(), best.copy()
    some[:4] += 1
    many[:20] += 1
    reference = make_run("a", best)
    for name, meant, verdict in (
        ("q", {"quantized": True}, Verdict.QUANTIZED),
        ("h", {"precision": "float16"}, None),
    ):
        few = replace(make_run(f"{name}-some", some), **meant)
        assert judge(reference, few) is (verdict or Verdict.UNDECIDED)
        assert judge(reference, replace(make_run(f"{name}-many", many), **meant)) is Verdict.FAULTY


@pytest.mark.parametrize(
    ("one", "two", "verdict"),
    [
        (0.0, 1e-38, Verdict.EQUIVALENT),
        (0.0, 9e-6, Verdict.EQUIVALENT),
        (0.0, 2e-5, Verdict.FAULTY),
        (1e-40, 0.0, Verdict.EQUIVALENT),
        (1e-40, 1.0, Verdict.FAULTY),
        (1e-12, 2e-12, Verdict.FAULTY),
        (1e-37, 0.0, Verdict.FAULTY),
    ],
)
def test_nothing_is_relative_to_zeros(make_run: MakeRun, one: float, two: float, verdict: Verdict) -> None:
    """Where the source gives what kernels take for zero, elements decide; tiny numbers are numbers."""
    arrays = (np.full((SAMPLES, 5), value, np.float32) for value in (one, two))
    result = compare_runs(*(make_run(str(name), array) for name, array in enumerate(arrays)), Tolerance())
    assert result.verdict is verdict, result.reason


def test_integers_are_read_as_the_source_stores_them(make_run: MakeRun, logits: np.ndarray) -> None:
    """A format without quantization gives the same integers; what they stand for is known from the other side."""
    stored = np.clip(np.rint(logits / 0.25) + 100, 0, 255).astype(np.uint8)
    reals = (stored.astype(np.float32) - 100) * np.float32(0.25)
    source = make_run("a", reals, quantization=Quantization(0.25, 100), dtype="uint8")
    plain = make_run("b", stored, names=("y",))
    for one, two in ((source, plain), (plain, source)):
        result = compare_runs(one, two, Tolerance())
        assert result.verdict is Verdict.EQUIVALENT
        assert result.outputs[0].error.max_abs == 0
        assert result.outputs[0].answers is not None
        assert "can't hold a scale and zero point for its integers" in result.outputs[0].notes[0]
    wide = make_run("c", stored.astype(np.int32))
    assert judge(source, wide) is Verdict.FAULTY


def test_best_classes_of_a_source_in_eight_bits(make_run: MakeRun) -> None:
    """It has no budget, but its scores are steps, of which two are often equal."""
    best = np.random.default_rng(0).integers(0, 9, (SAMPLES, 1))
    some, many = best.copy(), best.copy()
    some[:4] += 1
    many[:20] += 1
    reference = make_run("a", best, quantized=True)
    assert judge(reference, make_run("b", some)) is Verdict.UNDECIDED
    assert judge(reference, make_run("c", many)) is Verdict.FAULTY


@pytest.mark.parametrize(
    ("size", "verdict"), [(0.05, Verdict.NOISE), (0.11, Verdict.UNDECIDED), (0.5, Verdict.FAULTY)]
)
def test_no_rounding_excuses_a_tenth(make_run: MakeRun, logits: np.ndarray, size: float, verdict: Verdict) -> None:
    """However badly conditioned the source is, and however large the margin."""
    noise = np.random.default_rng(1).normal(size=(3, *logits.shape))
    second, rounded = (make_run(f"other{item}", (logits * (1 + 0.08 * noise[item]))[:16]) for item in (0, 2))
    others = {"second_opinion": dataclasses.replace(second, exact=True), "rounded": rounded}
    reference, tolerance = make_run("a", logits), Tolerance(noise_margin=100)
    other = make_run(f"b{size}", logits * (1 + size * noise[1]).astype(np.float32))
    result = compare_runs(reference, other, tolerance, **others)
    assert result.verdict is verdict, result.reason
    assert not result.open


def test_a_second_opinion_that_is_alone_is_asked_about(make_run: MakeRun, logits: np.ndarray) -> None:
    """Float64 gone wrong excuses nothing: it's undecided until rounding is measured by other means."""
    noise = np.random.default_rng(1).normal(size=(3, *logits.shape))
    second = dataclasses.replace(make_run("second", (logits * (1 + 0.15 * noise[0]))[:16]), exact=True)
    rounded = make_run("rounded", (logits * (1 + 1e-6 * noise[2]))[:16])
    reference, other = make_run("a", logits), make_run("b", (logits * (1 + 0.02 * noise[1])).astype(np.float32))
    result = compare_runs(reference, other, Tolerance(), second_opinion=second)
    assert (result.verdict, result.open) == (Verdict.UNDECIDED, True)
    result = compare_runs(reference, other, Tolerance(), second_opinion=second, rounded=rounded)
    assert (result.verdict, result.open) == (Verdict.FAULTY, False)


def test_memory_doesnt_grow_with_the_samples(make_run: MakeRun) -> None:
    scores = np.random.default_rng(0).normal(size=(30_000, 500)).astype(np.float32)
    reference, candidate = make_run("a", scores), make_run("b", scores)
    tracemalloc.start()
    result = compare_runs(reference, candidate, Tolerance())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.verdict is Verdict.EQUIVALENT
    assert peak < 2 * scores.nbytes


def test_a_budget_excuses_no_answers_that_hardly_depend_on_the_inputs(make_run: MakeRun, logits: np.ndarray) -> None:
    steady = logits[:1] + 1e-3 * logits
    result = compare_runs(make_run("a", steady), make_run("b", steady * 1.01, quantized=True), Tolerance())
    assert result.verdict is Verdict.UNDECIDED
    assert "give nearly the same output" in result.reason
    near = compare_runs(
        make_run("c", steady), make_run("d", steady * np.float32(1.0005), quantized=True), Tolerance()
    )
    assert near.verdict is Verdict.QUANTIZED

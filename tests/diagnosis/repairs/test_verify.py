"""What doesn't hold on samples that took no part is no repair."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from localized import WEIGHTS, Variant
from onnx_networks import drawn, written
from small_models import model_of

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs import verify
from conrepair.diagnosis.repairs.options import Ran, RepairOptions
from conrepair.diagnosis.repairs.outcomes import Agreement
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.diagnosis.repairs.verify import (
    SampledAnswers,
    Unseen,
    agreement,
    is_better,
    is_of_use,
    is_the_source,
    is_worse,
    shared_batch,
    undone,
    unseen_samples,
)
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConrepairError, InferenceError, ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of


@pytest.mark.parametrize(
    ("error", "answers", "worse"),
    [
        (0.1, 3, False),
        (0.105, 4, False),  # chance
        (0.01, 5, True),
        (0.2, 0, True),
        (math.inf, 3, True),
        (math.nan, 3, True),
        (0.0, None, False),
    ],
)
def test_worse_is_more_than_chance(error: float, answers: int | None, worse: bool) -> None:
    assert is_worse(Agreement(64, error, answers), Agreement(64, 0.1, 3)) is worse


@pytest.mark.parametrize(
    ("error", "answers", "better"),
    [
        (0.09, 3, False),  # chance
        (0.05, 3, True),
        (0.1, 1, True),
        (0.05, 5, False),
        (0.2, 0, False),
        (math.nan, 0, False),
        (0.05, None, True),
    ],
)
def test_better_is_more_than_chance(error: float, answers: int | None, better: bool) -> None:
    assert is_better(Agreement(64, error, answers), Agreement(64, 0.1, 3)) is better


@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 6), st.integers(0, 6))
def test_rows_of_some_samples(each: int, samples: int, one: int, two: int) -> None:
    begin, end = sorted((min(one, samples), min(two, samples)))
    whole = SampledAnswers(
        samples, {"rows": np.arange(each * samples), "of all": np.arange(samples * 2 + 1), "one": np.ones(())}
    )
    hypothesis.assume(samples > 1)
    found = whole.rows(begin, end)
    assert found.samples == end - begin
    np.testing.assert_array_equal(found.outputs["rows"], np.arange(each * begin, each * end))
    assert (found.outputs["of all"].size, found.outputs["one"].size) == (samples * 2 + 1, 1)


def test_a_fixed_batch_is_compared_with_an_open_one(tmp_path: Path) -> None:
    """Both get the smaller one: the same samples, and outputs with several rows for each."""
    sides = [Variant(size=(12, 12)).write(tmp_path / f"{name}.onnx") for name in ("fixed", "open")]
    for model in sides:
        proto = onnx.load(model.path)
        if model is sides[0]:
            proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1, 1]), "rows"))
        proto.graph.node.append(onnx.helper.make_node("Reshape", [proto.graph.output[0].name, "rows"], ["flat"]))
        proto.graph.output.append(onnx.helper.make_tensor_value_info("flat", onnx.TensorProto.FLOAT, ["all", 1]))
        onnx.save(proto, model.path)
    described = [framework("onnx").describe(model).inputs for model in sides]
    drawn = DataReference("synthetic", 7, samples=described[1])
    subjects = [FedModel(model, inputs, drawn, None) for model, inputs in zip(sides, described, strict=True)]
    size = shared_batch(*described)
    assert size == 2
    found = agreement(*(Unseen(1, 6, size).answers(side, side.model) for side in subjects))
    assert (found.samples, found.top1_differing) == (6, 0)
    assert found.error < 1e-6


def test_a_repair_is_verified_whatever_the_batches(tmp_path: Path) -> None:
    right, wrong = (tmp_path / name for name in ("right.onnx", "wrong.onnx"))
    sides = (
        Variant(size=(12, 12)).write(right),
        Variant(size=(12, 12), weights={"inner": WEIGHTS["inner"] * np.float32(1.5)}).write(wrong),
    )
    proto = onnx.load(right)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    onnx.save(proto, right)
    described = [framework("onnx").describe(model).inputs for model in sides]
    drawn = DataReference("synthetic", 24, samples=described[1])
    subjects = [FedModel(model, inputs, drawn, None) for model, inputs in zip(sides, described, strict=True)]
    result = repair_models(*subjects, tmp_path / "out", RepairOptions(Options(samples=4), seconds=60, unseen=16))
    assert result.mended
    assert result.unseen_after.samples == 16
    assert result.unseen_after.error < 1e-6 < result.unseen_before.error


def _wrong_by_an_attribute(folder: Path) -> list[FedModel]:
    text = "net (float[n, 16] x) => (float[n, 16] y) {{ a = LeakyRelu <alpha = {alpha}> (x) y = MatMul (a, w) }}"
    paths = [
        written(folder / f"{alpha}.onnx", text.format(alpha=alpha), {"w": drawn(16, 16)}) for alpha in (0.1, 0.5)
    ]
    models = [model_of("onnx", path) for path in paths]
    inputs = framework("onnx").describe(models[0]).inputs
    return [FedModel(model, inputs, DataReference("synthetic", 24, samples=inputs), None) for model in models]


def test_what_is_the_source_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sides, run = _wrong_by_an_attribute(tmp_path), []
    asked = verify.Unseen.answers

    def noted(self: verify.Unseen, subject: FedModel, model: Model) -> Any:
        run.append(model.path)
        return asked(self, subject, model)

    monkeypatch.setattr(verify.Unseen, "answers", noted)
    result = repair_models(*sides, tmp_path / "out", RepairOptions(Options(samples=4), seconds=60, unseen=16))
    assert result.mended
    assert run == [side.model.path for side in sides]
    assert "no output can differ" in result.effects[-1]
    assert (result.unseen_after.samples, result.unseen_after.error) == (16, 0)
    assert result.unseen_before.error > 0.01


def test_what_was_run_before_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = [replace(side, data=replace(side.data, first=(9, 2))) for side in _wrong_by_an_attribute(tmp_path)]
    options = RepairOptions(Options(samples=4), unseen=13)
    ran, unseen = [], unseen_samples(*sides, options)
    for side in sides:
        folder = tmp_path / f"run of {Path(side.model.path).stem}"
        folder.mkdir()
        in_order = replace(side, data=replace(side.data, first=()))
        parts = [item.outputs["y"] for item in Unseen(0, 24).answers(in_order, side.model)]
        np.save(folder / "output_0.npy", np.concatenate(parts))
        outputs = framework("onnx").describe(side.model).outputs
        ran.append(Ran(str(folder), side.model.sha256, 16, outputs, ordered=True))
    right, theirs = ([*unseen.answers(side, side.model)] for side in sides)
    wanted = unseen.agreement(right, theirs)
    monkeypatch.setattr(verify.Unseen, "answers", lambda *_: pytest.fail("it's run again"))
    held = [[*unseen.as_it_came(*pair)] for pair in zip(sides, ran, strict=True)]
    assert [item.samples for item in held[0]] == [item.samples for item in right] == [4, 8, 1]
    assert unseen.agreement(*held) == wanted
    assert wanted.error > 0.01


@pytest.mark.parametrize("other", ["model", "samples", "type"])
def test_what_another_one_gave_is_no_answer(other: str, tmp_path: Path) -> None:
    side = _wrong_by_an_attribute(tmp_path)[0]
    stored = np.zeros((23 if other == "samples" else 24, 16), "f8" if other == "type" else "f4")
    np.save(tmp_path / "output_0.npy", stored)
    outputs = framework("onnx").describe(side.model).outputs
    sha256 = "0" * 64 if other == "model" else side.model.sha256
    unseen = unseen_samples(side, side, RepairOptions(Options(samples=4), unseen=8))
    found = [*unseen.as_it_came(side, Ran(str(tmp_path), sha256, 16, outputs, ordered=True))]
    assert found[0].outputs["y"].any()


@pytest.mark.parametrize(
    "changed", ["nothing", "how its opset is written", "weight", "ir_version", "opset", "data", "chance"]
)
def test_which_file_is_the_source(changed: str, tmp_path: Path) -> None:
    source, target = _wrong_by_an_attribute(tmp_path)
    proto = onnx.load(source.model.path)
    if changed == "weight":
        weights = onnx.numpy_helper.to_array(proto.graph.initializer[0]).copy()
        weights[3, 3] = np.nextafter(weights[3, 3], np.float32(9))
        proto.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
    elif changed == "ir_version":
        proto.ir_version -= 1
    elif changed == "opset":
        proto.opset_import[0].version -= 1
    elif changed == "how its opset is written":
        proto.opset_import[0].domain = ""
    elif changed == "chance":
        proto.graph.node.append(onnx.helper.make_node("RandomNormal", [], ["noise"], shape=[1]))
        onnx.save(proto, source.model.path)
    onnx.save(proto, tmp_path / "file.onnx")
    if changed == "data":
        target = replace(target, data=replace(target.data, count=23))
    found = is_the_source(source, target, model_of("onnx", tmp_path / "file.onnx"))
    assert found is (changed in {"nothing", "how its opset is written"})


def test_what_makes_others_worse_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = WEIGHTS["inner"].copy()
    inner[2] *= -2
    right, wrong = (tmp_path / name for name in ("right.onnx", "wrong.onnx"))
    sides = Variant(size=(12, 12)).write(right), Variant(size=(12, 12), weights={"inner": inner}).write(wrong)

    def subject(model: Model) -> FedModel:
        inputs = framework("onnx").describe(model).inputs
        return FedModel(model, inputs, DataReference("synthetic", 8, samples=inputs), None)

    told = iter([Agreement(4, 0.1, 1), Agreement(4, 0.2, 3)])
    monkeypatch.setattr(verify, "agreement", lambda *_, **__: next(told))
    options = RepairOptions(Options(samples=4, batch_size=4), seconds=60, unseen=4)
    result = repair_models(*map(subject, sides), tmp_path / "out", options)
    assert (result.edits, result.model, result.patch, result.mended) == ((), None, None, False)
    assert "undone" in result.effects[-1]
    assert not list((tmp_path / "out").iterdir())
    assert np.isclose(result.unseen_after.error, 0.1)


@pytest.mark.parametrize("error", [InferenceError, ModelLoadError])
def test_what_does_not_run_on_others_is_undone(
    error: type[ConrepairError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a shape does that holds for the batch only that layers were looked at with."""
    told = iter([Agreement(16, 0.5, 4)])

    def agreement_of(*_: object, **__: object) -> Agreement:
        found = next(told, None)
        if found is None:
            raise error("running the model failed")
        return found

    monkeypatch.setattr(verify, "agreement", agreement_of)
    inner = WEIGHTS["inner"] * np.float32(1.5)
    models = [Variant().write(tmp_path / "right.onnx"), Variant(weights={"inner": inner}).write(tmp_path / "w.onnx")]
    inputs = framework("onnx").describe(models[0]).inputs
    data = DataReference("synthetic", 12, samples=inputs)
    sides = [FedModel(model, inputs, data, None) for model in models]
    result = repair_models(*sides, tmp_path / "out", RepairOptions(Options(samples=4, batch_size=4), 60, unseen=8))
    assert result.effects[-1].startswith("undone: outputs differ by inf")
    assert (result.edits, result.model, result.patch) == ((), None, None)
    assert not result.mended


def test_right_answers_are_counted_where_labels_are_known() -> None:
    scores = np.eye(3, dtype=np.float32)
    wrong = np.roll(scores, 1, axis=1)
    right = [SampledAnswers(3, {"y": scores}), SampledAnswers(3, {"y": scores})]
    given = [SampledAnswers(3, {"y": scores}), SampledAnswers(3, {"y": wrong})]
    found = agreement(right, given, [0, None, 2, 0, 1, None])
    assert (found.top1_differing, found.labelled, found.right) == (3, 4, 2)
    assert agreement(right, given, [None] * 6).right is None
    assert agreement(right, given).right is None


def cut_off_otherwise(count: int, folder: Path) -> list[FedModel]:
    """Without its Tanh the target is right where nothing is cut off, as of the first sample."""
    text = """net (float[n, 16] x) => (float[n, 16] y) {{
        a = MatMul (x, first)
        b = Max (a, low)
        c = {last}
        y = MatMul (c, second)
    }}"""
    weights = {"first": drawn(16, 16), "second": drawn(16, 16, seed=1), "low": np.float32(-1)}
    right = written(folder / "right.onnx", text.format(last="Min (b, high)"), {**weights, "high": np.float32(1)})
    wrong = written(folder / "wrong.onnx", text.format(last="Tanh (b)"), weights)
    rows = np.random.default_rng(6).normal(size=(count, 16)).astype(np.float32)
    rows *= np.float32([0.1] + [50] * (count - 1))[:, np.newaxis]
    data = folder / "data.npz"
    np.savez(data, x=rows)
    models = [model_of("onnx", path) for path in (right, wrong)]
    reference = DataReference("tensors", len(rows), str(data), sha256_of(data))
    return [FedModel(model, framework("onnx").describe(model).inputs, reference, None) for model in models]


_ONE_SAMPLE = RepairOptions(Options(samples=1, batch_size=1), seconds=60, unseen=16)


@pytest.mark.parametrize("count", [4, 17])
def test_what_one_sample_says_must_hold_on_others(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where other values than the samples' aren't tried. With enough samples, it's searched again on more of them."""
    monkeypatch.setattr("conrepair.diagnosis.repairs.bench.failing", lambda *_: {})
    result = repair_models(*cut_off_otherwise(count, tmp_path), tmp_path / "out", _ONE_SAMPLE)
    assert "is removed: outputs differ by 0 %" in result.effects[0]
    assert result.effects[1].startswith("undone")
    if count > 4:
        assert result.mended
        assert len(result.edits) == 1
        assert "Min" in result.edits[0]
        assert result.unseen_after.error < 1e-6
        assert result.undone is None
        return
    assert result.undone == result.effects[1]
    assert result.after == result.before
    assert not result.mended
    assert result.unseen_after == result.unseen_before
    assert (result.edits, result.model, result.patch) == ((), None, None)
    assert not list((tmp_path / "out").iterdir())


def test_an_operator_that_only_large_values_need_is_not_taken_out(tmp_path: Path) -> None:
    result = repair_models(*cut_off_otherwise(4, tmp_path), tmp_path / "out", _ONE_SAMPLE)
    assert result.mended
    assert len(result.edits) == 1
    assert "Min" in result.edits[0]
    assert result.unseen_after.error < 1e-6


def same_scores(rows: int) -> np.ndarray:
    return np.eye(4, dtype=np.float32)[np.arange(rows) % 4]


def test_models_agree_by_their_worst_output_over_all_batches() -> None:
    ours = [SampledAnswers(4, {"y": same_scores(4), "z": np.ones((4, 2, 3), np.float32)})] * 2
    theirs = [
        SampledAnswers(4, {"y": same_scores(4), "z": np.full((4, 2, 3), 1.5, np.float32)}),
        SampledAnswers(4, {"y": same_scores(4) * 2, "z": np.ones((4, 2, 3), np.float32)}),
    ]
    found = agreement(ours, theirs)
    assert (found.samples, found.top1_differing, found.labelled, found.right) == (8, 0, 0, None)
    assert found.error == pytest.approx(np.sqrt(0.5)), "of the scores, over both batches"
    assert agreement(ours[:1], theirs[:1]).error == pytest.approx(0.5)
    assert agreement(ours, ours).error == 0.0
    assert agreement([], []) == Agreement(0, 0.0, None)


@pytest.mark.parametrize("missing", ["ours", "theirs"])
def test_an_output_without_a_partner_is_no_agreement(missing: str) -> None:
    both = SampledAnswers(4, {"y": same_scores(4), "z": np.ones((4, 7), np.float32)})
    one = SampledAnswers(4, {"y": same_scores(4)})
    sides = (one, both) if missing == "ours" else (both, one)
    assert agreement([one, sides[0]], [one, sides[1]]).error == np.inf
    assert agreement([sides[0], one], [sides[1], one]).error == np.inf


@pytest.mark.parametrize(
    ("array", "differing"),
    [
        (same_scores(4), 4),
        (same_scores(4).astype(np.int64), None),
        (np.ones((4, 1), np.float32), None),
        (np.ones((4, 2, 2), np.float32), None),
    ],
)
def test_answers_differ_where_outputs_are_scores(array: np.ndarray, differing: int | None) -> None:
    found = agreement([SampledAnswers(4, {"y": array})], [SampledAnswers(4, {"y": np.roll(array, 1, axis=1)})])
    assert found.top1_differing == differing


@pytest.mark.parametrize(
    ("samples", "clean", "error", "of_use"),
    [
        (8, True, 0.1, True),
        (8, True, 0.11, True),
        (8, True, 0.12, False),
        (8, False, 0.1, False),
        (8, False, 0.08, True),
        (8, False, 0.081, False),
        (4, True, 0.0, False),  # it didn't run on all
        (4, False, 0.0, False),
        (8, True, float("nan"), False),
    ],
)
def test_what_is_delivered(samples: int, clean: bool, error: float, of_use: bool) -> None:
    before = Agreement(8, 0.1, None)
    assert is_of_use(Agreement(samples, error, None), before, clean=clean) is of_use


def test_why_it_is_undone() -> None:
    before = Agreement(8, 0.1, 3)
    assert undone(Agreement(8, 0.5, None), before) == "undone: outputs differ by 50 % on unseen samples, 10 % before"
    assert undone(Agreement(8, 0.5, 4), before).endswith("10 % before; 4 top-1 predictions differ, 3 before")
    assert undone(Agreement(8, 0.5, 4), Agreement(8, 0.1, None)).endswith("4 top-1 predictions differ, 0 before")


@pytest.mark.parametrize(
    ("sides", "batch"),
    [
        ([[("n", 3)], [("n", 3)]], 8),
        ([[(2, 3)], [("n", 3)]], 2),
        ([[(4, 3)], [(2, 3)]], 2),
        ([[("n", 3), (1, 3)], [("n", 3)]], 8),  # of the first input
        ([[()], [("n", 3)]], 8),
        ([[], []], 8),
    ],
)
def test_samples_at_a_time(sides: list[list[tuple[str | int, ...]]], batch: int) -> None:
    specs = [[TensorSpec("x", shape, "float32") for shape in side] for side in sides]
    assert shared_batch(*specs) == batch


@pytest.mark.parametrize(
    ("counts", "begin"),
    [((12, 12), 4), ((5, 12), 4), ((4, 12), 0), ((12, 3), 0)],
)
def test_they_lie_behind_those_that_are_looked_at_or_are_all(counts: tuple[int, int], begin: int) -> None:
    sides = [
        FedModel(Model("onnx", "model.onnx", ""), (spec,), DataReference("synthetic", count, samples=(spec,)), None)
        for count, spec in zip(
            counts, (TensorSpec("x", (2, 5), "float32"), TensorSpec("x", ("n", 5), "float32")), strict=True
        )
    ]
    found = unseen_samples(*sides, RepairOptions(Options(samples=4), unseen=6, labels=tuple(range(12))))
    assert (found.begin, found.count, found.batch_size) == (begin, 6, 2)
    assert found.labels == tuple(range(begin, 12))

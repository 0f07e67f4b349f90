"""Targets that are fed otherwise than their source: rightly, or wrongly."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from localized import WEIGHTS, Array, Variant, localized, pictures
from onnx_networks import drawn, written
from small_models import model_of, relative_l2

from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict

FACTOR = np.float32(0.25)
NORMALISING = "m = Sub (image, mean)\n n = Div (m, deviation)"
NUMBERS = {"mean": np.float32([0.4]), "deviation": np.array([FACTOR])}


def normalised(array: Array) -> Array:
    return ((array - np.float32(0.4)) / FACTOR).astype(np.float32)


def blurred(array: Array) -> Array:
    """As another way of resizing does: no formula of single values."""
    return ((array + np.roll(array, 1, axis=3)) / 2).astype(np.float32)


WRONG: dict[str, tuple[Callable[[Array], Array], Kind, str]] = {
    "bgr": (lambda array: array[:, ::-1], Kind.PREPROCESSING, "RGB against BGR"),
    "bytes": (lambda array: array * 255, Kind.PREPROCESSING, "not divided by it?"),
    "range": (lambda array: 2 * array - 1, Kind.PREPROCESSING, r"from \[0, 1\] to \[-1, 1\]"),
    "upside down": (lambda array: array[:, :, ::-1], Kind.INPUT, "reversed along axes"),
    "resized": (blurred, Kind.PREPROCESSING, "Another way of resizing"),
    "a little": (lambda array: array * 1.0002, Kind.PREPROCESSING, "constants are rounded in another way"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_preparation_is_named_and_no_layer(name: str, tmp_path: Path) -> None:
    change, kind, words = WRONG[name]
    model = Variant().write(tmp_path / "net.onnx")
    right = pictures()
    wrong = np.ascontiguousarray(change(right), dtype=np.float32)
    result = localized(tmp_path, model, model, right, wrong)
    assert result.verdict == Verdict.FAULTY
    (fault,) = result.faults
    assert (fault.kind, fault.source_layers, fault.target_layers) == (kind, ("image",), ("image",))
    assert fault.introduced_error == pytest.approx(relative_l2(right, wrong), rel=1e-3)
    assert fault.confidence == 1.0
    assert re.search(words, fault.evidence[0])
    assert not any(row.guilty for row in result.layers)


def test_equal_feeds_are_no_fault(tmp_path: Path) -> None:
    model = Variant().write(tmp_path / "net.onnx")
    result = localized(tmp_path, model, model, pictures(), pictures())
    assert (result.verdict, result.faults, result.notes) == (Verdict.EQUIVALENT, (), ())


@pytest.mark.parametrize("folded", [False, True])
def test_target_with_the_normalisation_inside_is_right(folded: bool, tmp_path: Path) -> None:
    source = Variant().write(tmp_path / "source.onnx")
    if folded:
        target = Variant(weights={"first": WEIGHTS["first"] / FACTOR}).write(tmp_path / "target.onnx")
        result = localized(tmp_path, source, target, pictures() / FACTOR, pictures())
    else:
        target = Variant(NORMALISING, "n", weights=NUMBERS).write(tmp_path / "target.onnx")
        result = localized(tmp_path, source, target, normalised(pictures()), pictures())
    assert (result.verdict, result.faults, result.notes) == (Verdict.EQUIVALENT, (), ())


def test_source_with_the_normalisation_inside_is_right(tmp_path: Path) -> None:
    source = Variant(NORMALISING, "n", weights=NUMBERS).write(tmp_path / "source.onnx")
    target = Variant().write(tmp_path / "target.onnx")
    result = localized(tmp_path, source, target, pictures(), normalised(pictures()))
    assert (result.verdict, result.faults) == (Verdict.EQUIVALENT, ())


def test_fault_behind_a_right_other_preparation_is_the_layers(tmp_path: Path) -> None:
    source = Variant().write(tmp_path / "source.onnx")
    weights = {**NUMBERS, "inner": WEIGHTS["inner"] * np.float32(0.9)}
    target = Variant(NORMALISING, "n", weights=weights).write(tmp_path / "target.onnx")
    result = localized(tmp_path, source, target, normalised(pictures()), pictures())
    assert [(fault.kind, fault.target_layers[0]) for fault in result.faults] == [(Kind.PARAMETERS, "c")]


def test_wrong_preparation_and_a_wrong_layer_are_two_faults(tmp_path: Path) -> None:
    source = Variant().write(tmp_path / "source.onnx")
    target = Variant(weights={"inner": WEIGHTS["inner"] * np.float32(0.9)}).write(tmp_path / "target.onnx")
    wrong = np.ascontiguousarray(pictures()[:, ::-1])
    result = localized(tmp_path, source, target, pictures(), wrong)
    found = [(fault.kind, fault.target_layers[0]) for fault in result.faults]
    assert found == [(Kind.PREPROCESSING, "image"), (Kind.PARAMETERS, "c")]


def test_doubt_is_a_note(tmp_path: Path) -> None:
    """The first layer is wrong with either input: the input isn't accused."""
    source = Variant().write(tmp_path / "source.onnx")
    target = Variant(weights={"bias": -2 * WEIGHTS["bias"]}).write(tmp_path / "target.onnx")
    result = localized(tmp_path, source, target, pictures(), np.ascontiguousarray(pictures()[:, ::-1]))
    assert {fault.kind for fault in result.faults} == {Kind.PARAMETERS}
    assert any("can't tell" in note and "BGR" in note for note in result.notes)


def test_exchanged_inputs_are_named(tmp_path: Path) -> None:
    text = """twins (float[batch, 6] one, float[batch, 6] two) => (float[batch, 3] y) {{
        a = MatMul ({}, first)
        b = Relu (a)
        c = MatMul ({}, second)
        d = Tanh (c)
        e = Mul (b, d)
        y = MatMul (e, last)
    }}"""
    weights = {"first": drawn(6, 8, seed=1), "second": drawn(6, 8, seed=2), "last": drawn(8, 3, seed=3)}
    models = [
        model_of("onnx", written(tmp_path / f"{place}.onnx", text.format(*names), weights))
        for place, names in enumerate([("one", "two"), ("two", "one")])
    ]
    feeds = {"one": drawn(7, 6, seed=4), "two": drawn(7, 6, seed=5)}
    result = localized(tmp_path, *models, feeds, feeds)
    assert {fault.kind for fault in result.faults} == {Kind.INPUT}
    first = result.faults[0]
    assert {"one", "two"} <= set(first.target_layers)
    assert first.evidence[0].startswith("inputs are exchanged: one stands for two of the original")


TOKENS = """tokens (int64[batch, 4] ids, int64[batch, 4] mask, int64[batch, 4] types) => (float[batch, 3] y) {{
    a = Gather (words, ids)
    b = Gather (segments, {})
    c = Add (a, b)
    d = Cast <to = 1> ({})
    e = Unsqueeze (d, last)
    f = Mul (c, e)
    g = ReduceMean <axes = [1], keepdims = 0> (f)
    y = MatMul (g, dense)
}}"""
TABLES = {
    "words": drawn(50, 8, seed=1, scale=1.0), "segments": drawn(2, 8, seed=2, scale=1.0),
    "dense": drawn(8, 3, seed=3), "last": np.array([2]),
}  # fmt: skip


def tokens() -> dict[str, Array]:
    generator = np.random.default_rng(0)
    return {name: generator.integers(0, high, (7, 4)) for name, high in (("ids", 50), ("mask", 2), ("types", 2))}


@pytest.mark.parametrize("exchanged", [True, False])
def test_an_order_of_inputs_that_cannot_be_fed_is_none(exchanged: bool, tmp_path: Path) -> None:
    """Tokens can't be fed to the table of the segments."""
    source = model_of("onnx", written(tmp_path / "source.onnx", TOKENS.format("types", "mask"), TABLES))
    read = ("mask", "types") if exchanged else ("types", "mask")
    weights = TABLES if exchanged else TABLES | {"dense": TABLES["dense"] * np.float32([1, 1.3, 1])}
    target = model_of("onnx", written(tmp_path / "target.onnx", TOKENS.format(*read), weights))
    result = localized(tmp_path, source, target, tokens(), tokens())
    (fault,) = result.faults
    assert fault.kind == (Kind.INPUT if exchanged else Kind.PARAMETERS)
    assert ("inputs are exchanged" in fault.evidence[0]) == exchanged


def test_a_sources_input_that_the_target_cannot_be_fed_is_no_reason_to_stop(tmp_path: Path) -> None:
    text = """rows (float[batch, 4] x) => (float[batch, 3] y) {{
        {}
        i = Cast <to = 7> (r)
        a = Gather (words, i)
        b = ReduceMean <axes = [1], keepdims = 0> (a)
        y = MatMul (b, dense)
    }}"""
    reading = "r = Mul (x, hundredth)", "r = Identity (x)"
    tables = TABLES, TABLES | {"words": TABLES["words"][::-1].copy()}
    models = [
        model_of(
            "onnx", written(tmp_path / f"{place}.onnx", text.format(line), {**table, "hundredth": np.float32(0.01)})
        )
        for place, (line, table) in enumerate(zip(reading, tables, strict=True))
    ]
    rows = np.random.default_rng(0).integers(0, 50, (7, 4)).astype(np.float32)
    result = localized(tmp_path, *models, {"x": 100 * rows + 50}, {"x": rows + np.float32(0.5)})
    assert result.verdict == Verdict.FAULTY
    assert Kind.PARAMETERS in {fault.kind for fault in result.faults}

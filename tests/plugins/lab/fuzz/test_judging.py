"""What's said of answers that no real system gives here on demand, and of networks that are odd but right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from fuzz_cases import case, right

from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.looking import (
    ALIKE,
    ILL,
    RIGHT,
    SUSPECT,
    UNJUDGED,
    Looked,
    look,
    looked_at,
    other_answers,
)
from conrepair_lab.fuzz.trial import Trial
from conrepair_lab.systems.registry import entry

ORT = entry("ort-all")
HALVES = """g (float[1, 1, 2] x, float[1, 3, 2] w, float[1, 3, 1] r, float[1, 6] b) => (float[1, 1, 1, 1] y)
{ y = GRU <hidden_size = 1, clip = 0.5> (x, w, r, b) }"""  # no referee clips


def f32(values: Any) -> Any:
    return np.array(values, np.float32)


def answered(made: Case, *answers: Any) -> Looked:
    trial = Trial(tuple({"y": np.asarray(item)} for item in answers))
    return looked_at(made, trial, other_answers(made), ORT.chosen)


def kind(found: Looked) -> str:
    assert found.suspicion is not None
    assert found.verdict == SUSPECT
    return found.suspicion.kind


def seen(made: Case, name: str, folder: Path) -> Looked:
    asked = entry(name)
    return look(made, asked.runs, asked.chosen, folder)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([f32([1, -2]), f32([1, -3])], "layout"),
        ([f32([1, -2]), f32([1, -2]), f32([1, -3])], "chance"),
        ([f32([[1, -2]])], "shape"),
        ([np.array([1.0, -2])], "type"),
        ([f32([1, -2.01])], "numbers"),
        ([f32([1, np.nan])], "not finite"),
        ([f32([np.inf, -2])], "not finite"),
    ],
)
def test_an_answer_that_is_wrong_in_one_way(answers: list[Any], expected: str) -> None:
    assert kind(answered(right(), *answers)) == expected


def test_an_output_that_is_missing() -> None:
    found = looked_at(right(), Trial(({"z": np.ones(2, np.float32)},)), other_answers(right()), ORT.chosen)
    assert kind(found) == "outputs"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"y": f32([[1, -2]])}, "shape"),
        ({"y": np.array([1.0, -2])}, "type"),
        ({}, "outputs"),
    ],
)
def test_a_face_that_is_wrong_where_onnx_runtime_has_no_answer(given: Any, expected: str) -> None:
    assert kind(looked_at(right(), Trial((given,)), None, ORT.chosen)) == expected


def test_an_answer_within_its_bound_is_right_and_how_near_is_told() -> None:
    found = answered(right(), f32([1, np.nextafter(np.float32(-2), np.float32(0))]))
    assert found.verdict == RIGHT
    assert 0 < found.near <= 1


def test_answers_that_nobody_computes_exactly_are_held_against_what_rounding_does_to_anothers() -> None:
    shapes = {"x": (1, 1, 2), "w": (1, 3, 2), "r": (1, 3, 1), "b": (1, 6)}
    made = case(HALVES, **{name: np.full(shape, 0.1, np.float32) for name, shape in shapes.items()})
    theirs = other_answers(made)
    assert theirs is not None
    near = answered(made, np.nextafter(theirs["y"], np.float32(9)))
    assert (near.verdict, near.suspicion) == (ALIKE, None)
    for far in (1.0, 1e-4):
        assert kind(answered(made, (theirs["y"] * (1 + far)).astype(np.float32))) == "differs"


@pytest.mark.parametrize("operator", ["RandomUniformLike", "RandomNormalLike", "Bernoulli"])
def test_numbers_that_are_drawn_by_the_network_are_nobodys_fault(operator: str, tmp_path: Path) -> None:
    made = case(
        f"g (float[8] x) => (float[8] y) {{ a = {operator} (x) y = Add (a, x) }}", x=np.full(8, 0.5, np.float32)
    )
    assert seen(made, "ort-none", tmp_path).verdict != SUSPECT


@pytest.mark.parametrize("values", [[1.1, 2.3], [1.1, np.nan], [np.inf, -0.0]])
@pytest.mark.parametrize("name", ["ort-none", "ort-all"])
def test_a_right_bfloat16_is_not_suspected(name: str, values: list[float], tmp_path: Path) -> None:
    text = "g (float[2] x) => (bfloat16[2] y) { y = Cast <to = 16> (x) }"
    assert seen(case(text, x=np.array(values, np.float32)), name, tmp_path).verdict != SUSPECT


def test_a_bfloat16_is_fed(tmp_path: Path) -> None:
    text = "g (bfloat16[2] x) => (float[2] y) { y = Cast <to = 1> (x) }"
    made = case(text, x=np.array([1.5, -2], ml_dtypes.bfloat16))
    assert seen(made, "ort-none", tmp_path).verdict == RIGHT


@pytest.mark.parametrize(
    "text",
    [
        "g () => (float y) { y = Constant <value_float = 1.5> () }",
        'g () => (string[1] y) { y = Constant <value_strings = ["a"]> () }',
        "g () => (float[0] y) <float[0] c = {}> { y = Relu (c) }",
    ],
)
@pytest.mark.parametrize("name", ["ort-none", "ort-all", "convert-version"])
def test_networks_without_inputs_or_elements_are_right(text: str, name: str, tmp_path: Path) -> None:
    assert seen(case(text), name, tmp_path).verdict in {RIGHT, UNJUDGED}


UNSAID = {
    "a fraction that's made whole": (
        "g (int32[3, 2] x) => (int32[13, 2] y) <int64[2] s = {13, 2}> "
        '{ y = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (x, , , s) }',
        np.array([[-7, 2], [-5, 3], [8, -1]], np.int32),
    ),
    "what a type has no number for": (
        "g (uint8[3] x) => (uint8[3] y) { y = Shrink <bias = 4.96, lambd = 0.5> (x) }",
        np.array([3, 5, 200], np.uint8),
    ),
    "a length that was cut off": (
        "g (float[5, 2] x) => (float[a, b] y) <int64[2] s = {2, 6}, float[4] r = {0.6, 0.8, 0.1, 0.9}> "
        '{ y = Resize <mode = "cubic", keep_aspect_ratio_policy = "not_larger", '
        'coordinate_transformation_mode = "tf_crop_and_resize"> (x, r, , s) }',
        np.arange(10, dtype=np.float32).reshape(5, 2) ** 2,
    ),
    "powers that are flushed to zero": (
        "g (float[1, 1, 4] x) => (float[1, 1, 3] y) { y = LpPool <kernel_shape = [2]> (x) }",
        np.array([[[1e-37, -2e-37, 3e-37, 1]]], np.float32),
    ),
    "dilations where a pool pads by itself": (
        "g (float[1, 1, 6] x) => (float[1, 1, 2] y) "
        '{ y = AveragePool <auto_pad = "VALID", dilations = [2], kernel_shape = [3]> (x) }',
        np.array([[[1, 2, 4, 8, 16, 32]]], np.float32),
    ),
}


@pytest.mark.parametrize("name", UNSAID)
def test_what_onnx_does_not_say_is_nobodys_fault(name: str, tmp_path: Path) -> None:
    text, x = UNSAID[name]
    made = Case.of(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> {text}'), {"x": x})
    assert seen(made, "ort-none", tmp_path).verdict in {RIGHT, ILL, UNJUDGED}


def test_a_whole_number_that_is_no_neighbour_is_suspect() -> None:
    text, x = UNSAID["a fraction that's made whole"]
    made = Case.of(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> {text}'), {"x": x})
    theirs = other_answers(made)
    assert theirs is not None
    wrong = theirs["y"].copy()
    wrong[6] += 2
    assert kind(answered(made, wrong)) == "numbers"


@pytest.mark.parametrize("dtype", ["float", "float16"])
def test_a_fault_far_larger_than_rounding_is_told_though_the_worst_case_is_larger_still(dtype: str) -> None:
    generator, terms = np.random.default_rng(0), 2048
    real = np.float16 if dtype == "float16" else np.float32
    x, w = (generator.uniform(0.5, 1, shape).astype(real) / 32 for shape in ((1, terms), (terms, 3)))
    made = case(
        f"g ({dtype}[1, {terms}] x, {dtype}[{terms}, 3] w) => ({dtype}[1, 3] y) {{ y = MatMul (x, w) }}", x=x, w=w
    )
    unit, exact = float(np.finfo(real).eps), x.astype(np.float64) @ w.astype(np.float64)
    assert answered(made, (exact * (1 + 2 * unit)).astype(real)).verdict in {RIGHT, ILL}
    assert kind(answered(made, (exact * (1 + terms * unit / 3)).astype(real))) == "numbers"


def test_optional_and_several_outputs(tmp_path: Path) -> None:
    text = "g (float[4] x) => (float[2] y, int64[2] z) <int64[1] k = {2}> { y, z = TopK (x, k) }"
    made = case(text, x=np.array([1, 4, 2, 3], np.float32))
    assert seen(made, "ort-all", tmp_path).verdict == RIGHT
    wrong = Trial(({"y": f32([4, 3]), "z": np.array([1, 2])},))
    assert kind(looked_at(made, wrong, other_answers(made), ORT.chosen)) == "numbers"

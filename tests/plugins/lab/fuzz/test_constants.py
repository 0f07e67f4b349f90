"""Inputs that are weights: the same network, and the same answers."""

from __future__ import annotations

import numpy as np
import onnx
from fuzz_cases import case

from conrepair_lab.fuzz.fed import drawn_constants, with_constants, with_fed_weights
from conrepair_lab.fuzz.looking import other_answers

TEXT = "g (float[2] a, float[2] b) => (float[2] y) { c = Mul (a, b) y = Add (c, a) }"
MADE = case(TEXT, a=np.float32([1, 2]), b=np.float32([3, 4]))


def test_answers_are_the_same() -> None:
    right = other_answers(MADE)
    assert right is not None
    for names in (["a"], ["b"], ["a", "b"]):
        found = with_constants(MADE, names)
        onnx.checker.check_model(found.model, full_check=True)
        assert sorted(found.inputs) == sorted({"a", "b"} - set(names))
        answers = other_answers(found)
        assert answers is not None
        assert answers["y"].tolist() == right["y"].tolist()


def test_half_of_the_time_all_inputs_are_weights() -> None:
    drawn = [drawn_constants(MADE, np.random.default_rng(seed)) for seed in range(200)]
    fed = [len(item.inputs) for item in drawn]
    assert set(fed) == {0, 1}
    assert 0.4 < fed.count(0) / len(fed) < 0.8


def test_texts_stay_inputs() -> None:
    text = "g (string[1] a, float[1] b) => (string[1] y, float[1] z) { y = Identity (a) z = Neg (b) }"
    made = case(text, a=np.array(["x"], object), b=np.ones(1, np.float32))
    assert list(drawn_constants(made, np.random.default_rng(0)).inputs) == ["a"]


def test_real_weights_become_inputs_and_whole_numbers_stay() -> None:
    text = """g (float[2] a) => (float[2] y) <float[2] w = {3, 4}, int64[2] i = {1, 0}>
    { c = Mul (a, w) y = Gather (c, i) }"""
    made = case(text, a=np.float32([1, 2]))
    fed = with_fed_weights(made)
    onnx.checker.check_model(fed.model, full_check=True)
    assert {name: array.tolist() for name, array in fed.inputs.items()} == {"a": [1, 2], "w": [3, 4]}
    assert [item.name for item in fed.model.graph.initializer] == ["i"]
    assert [(other_answers(item) or {})["y"].tolist() for item in (made, fed)] == [[8, 3]] * 2
    assert with_fed_weights(fed) is fed

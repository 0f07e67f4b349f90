"""How far right answers may be apart, by disturbances: what rounding explains is within, what it doesn't isn't."""

from __future__ import annotations

import numpy as np
from fuzz_cases import case

from conrepair_lab.fuzz.looking import other_answers
from conrepair_lab.fuzz.oracles.numbers import spread


def moved(text: str, **inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    made = case(text, **inputs)
    right = other_answers(made)
    assert right is not None
    allowed = spread(made, right)
    assert allowed is not None
    return right["y"], allowed["y"]


def test_a_product_moves_by_some_of_its_last_place() -> None:
    right, allowed = moved("g (float[4] x) => (float[4] y) { y = Mul (x, x) }", x=np.float32([1, 2, 3, 0]))
    ulps = allowed[:3] / np.spacing(right[:3])
    assert (ulps >= 4).all()
    assert (ulps < 100).all()


def test_what_cancels_moves_by_what_it_is_computed_of() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Exp (x) b = Exp (x) c = Mul (a, b) d = Mul (b, b) y = Sub (c, d) }"
    right, allowed = moved(text, x=np.float32([5, 1]))
    assert (right == 0).all()
    assert (allowed > np.spacing(np.exp(np.float32([10, 2])))).all()


def test_whole_numbers_may_differ_where_disturbances_move_them_alone() -> None:
    text = """g (float[3] x) => (int64[3] y) { a = Exp (x) l = Log (a) y = Cast <to = 7> (l) }"""
    _, allowed = moved(text, x=np.float32([1.5, 2.5, 3.0]))
    assert allowed[:2].tolist() == [0, 0]
    assert allowed[2] == np.inf


def test_nobody_estimates_what_onnx_runtime_doesnt_take() -> None:
    made = case("g (float[2] x) => (float[2] y) { y = Reshape (x, x) }", x=np.ones(2, np.float32))
    assert spread(made, {"y": np.ones(2, np.float32)}) is None

"""What disturbed runs estimate, where a running bound says nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conrepair.verdicts.truth.bound import Analysis
from conrepair.verdicts.truth.disturbed import disturbed
from conrepair.verdicts.truth.judging import judge

Array = npt.NDArray[Any]
ACCURACY = {"Tanh": 4.0, "Softmax": 4.0, "Exp": 4.0, "Log": 4.0}
DEPTH, WIDTH = 40, 24


def network(body: str, size: int, dtype: str = "float", **weights: Array) -> onnx.ModelProto:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g ({dtype}[1, {size}] x) => ({dtype}[1, n] y) {{ {body} }}'
    )
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


def deep(seed: int) -> onnx.ModelProto:
    rng = np.random.default_rng(seed)
    weights = {f"w{place}": rng.normal(0, 1.5 / WIDTH**0.5, (WIDTH, WIDTH)) for place in range(DEPTH)}
    body = "".join(
        f"m{place} = MatMul (h{place}, w{place}) h{place + 1} = Tanh (m{place}) " for place in range(DEPTH)
    )
    body = f"h0 = Identity (x) {body}y = Identity (h{DEPTH})"
    return network(body, WIDTH, **{name: array.astype(np.float32) for name, array in weights.items()})


def answered(model: onnx.ModelProto, x: Array) -> Array:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (found,) = session.run(None, {"x": x})
    assert isinstance(found, np.ndarray)
    return found


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 999))
def test_behind_many_layers_a_right_answer_is_explained_and_a_wrong_one_is_not(seed: int) -> None:
    model = deep(seed)
    x = np.random.default_rng(seed).normal(size=(1, WIDTH)).astype(np.float32)
    analysis = Analysis(model)
    found = analysis.at({"x": x}, ACCURACY)
    truth, bound = found.truth["y"], disturbed(analysis, {"x": x}, ACCURACY)["y"]
    size = np.sqrt(np.mean(truth**2))
    assert np.median(found.bound["y"]) > size  # says nothing
    given = answered(model, x)
    assert judge(given, given, truth, bound).one.bounds < 0.5
    wrong = given.copy()
    wrong[0, 3] += 0.02 * size
    assert judge(wrong, wrong, truth, bound).one.index == (0, 3)
    assert judge(wrong, wrong, truth, bound).one.beyond


def test_what_two_operands_have_in_common_is_known() -> None:
    model = network("a = Exp (x) b = Sub (a, a) c = Add (a, a) y = Concat <axis = 1> (b, c)", 2)
    x = np.array([[3, -2]], np.float32)
    analysis = Analysis(model)
    assert (analysis.at({"x": x}, ACCURACY).bound["y"][0, :2] > 0).all()
    found = disturbed(analysis, {"x": x}, ACCURACY)["y"]
    assert (found[0, :2] < 1e-30).all()  # no more than what may be flushed to zero
    assert (found[0, 2:] > 1e-8).all()


def test_where_a_network_amplifies_rounding_the_estimate_does() -> None:
    model = network("a = Log (x) b = Exp (a) y = Sub (b, x)", 3)
    x = np.array([[1e6, 1e3, 1.5]], np.float32)
    analysis = Analysis(model)
    truth, found = analysis.at({"x": x}).truth["y"], disturbed(analysis, {"x": x}, ACCURACY)["y"]
    given = answered(model, x)
    assert np.abs(given - truth).max() > 0.01  # of an answer that's zero
    assert not judge(given, given, truth, found).one.beyond


@pytest.mark.parametrize(("margin", "stepped"), [(1e-7, True), (0.1, False)])
def test_a_step_that_rounding_may_reach_is_seen(margin: float, stepped: bool) -> None:
    model = network("a = Exp (x) b = Log (a) y = Floor (b)", 1)
    x = np.array([[2 + margin]], np.float32)
    found = disturbed(Analysis(model), {"x": x}, ACCURACY)["y"]
    assert bool(found.item()) is stepped


def test_a_whole_number_between_two_is_disturbed() -> None:
    model = network("c = Cast <to = 6> (x) s = Shrink <bias = 0.3, lambd = 1.0> (c) y = Cast <to = 1> (s)", 2)
    x = np.array([[5, 1]], np.float32)
    found = disturbed(Analysis(model), {"x": x}, ACCURACY)["y"]
    assert found.tolist() == [[2, 0]]  # 4.7 is 4 or 5, with the margin of an estimate


def test_what_may_overflow_may_be_anything() -> None:
    model = network("a = Mul (x, x) y = Identity (a)", 2)
    x = np.array([[1.8446743e19, 3]], np.float32)
    found = disturbed(Analysis(model), {"x": x}, ACCURACY)["y"]
    assert found[0, 0] == np.inf
    assert 0 < found[0, 1] < 1e-4


def test_it_gives_the_same_each_time() -> None:
    model, x = deep(1), np.ones((1, WIDTH), np.float32)
    one, two = (disturbed(Analysis(model), {"x": x}, ACCURACY)["y"] for _ in range(2))
    np.testing.assert_array_equal(one, two)
